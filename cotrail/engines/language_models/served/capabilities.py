"""What the model of an endpoint lacks, as far as its table tells."""

from cotrail.core.generation import Capability
from cotrail.engines.language_models.chat_template import ChatTemplate, template_lacks
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.providers import PROVIDERS

_WORDS: dict[Capability, str] = {
    "scores": "log probabilities",
    "tools": "tools",
    "sampling": "top_k and no repetition penalty",
    "structure": "structured output",
}

_CONTINUES_NOTHING = (
    "is behind a chat server, and its table doesn't say how that goes on in the assistant's turn: set continues "
    'to "vllm" for vLLM and SGLang, "llama.cpp" for llama.cpp, or "prefix" for Mistral and DeepSeek; OpenAI can\'t'
)

_KNOWS_NO_TURNS = (
    "is asked for completions, which know no turns: set chat_template in its table to a file with the model's chat "
    'template, or api = "chat"'
)


def endpoint_lacks(endpoint: Endpoint, capability: Capability) -> str | None:
    """Why the model lacks a capability, see `ModelEngine.lacks`. No request is sent.

    Raises InputError where the endpoint's chat template can't be read.
    """
    if endpoint.thinking.may_think and (reason := _lacks_while_thinking(endpoint, capability)):
        return reason
    if capability == "scores" and "logprobs" in endpoint.omits:
        return "isn't asked for log probabilities, as its table says (`omits`): take a model that returns them"
    if capability in endpoint.without:
        return (
            f"is behind a server that has no {_WORDS[capability]}, as its table says (`without`): take a server of "
            "vLLM or llama.cpp, or a model that cotrail's own workers run"
        )
    if capability == "sampling" and _is_openais_alone(endpoint):
        return (
            "is behind OpenAI's protocol alone, which has no top_k and no repetition penalty: set those of the system "
            "to 0 and 1, or take a model behind a server of vLLM or llama.cpp, or one that cotrail's own workers run"
        )
    if endpoint.api not in ("completions", "chat") and capability in ("scores", "sampling"):
        return f"is behind an API that has no {_WORDS[capability]}: take a model behind a server of vLLM or llama.cpp"
    if endpoint.api != "completions":
        return _CONTINUES_NOTHING if capability == "continue" and endpoint.continues is None else None
    if capability in ("scores", "sampling", "structure"):
        return None
    return (
        template_lacks(ChatTemplate(endpoint.chat_template_source), capability)
        if endpoint.chat_template_source
        else _KNOWS_NO_TURNS
    )


_ADDRESSES = frozenset(provider.table["url"] for provider in PROVIDERS.values() if "url" in provider.table)


def _is_openais_alone(endpoint: Endpoint) -> bool:
    """Whether it is known without a request that the server has no extensions of vLLM's or llama.cpp's."""
    if endpoint.api not in ("completions", "chat"):
        return False
    return endpoint.url in _ADDRESSES or endpoint.batch is not None or endpoint.continues == "prefix"


def _lacks_while_thinking(endpoint: Endpoint, capability: Capability) -> str | None:
    """Why a model that thinks lacks a capability that it has otherwise."""
    off = 'have it not think (by template, effort or extra in its table, with thinks = "no"), or take another model'
    match capability:
        case "scores":
            return (
                f"thinks, and behind a thought log probabilities mean something else: {off}; Search-in-the-Chain needs "
                'none with confidence = "document" in its settings'
            )
        case "continue" if endpoint.api != "completions":
            return f"thinks, and no server then goes on in the assistant's turn: {off}"
        case "tools" if endpoint.hands_back == "none":
            return 'thinks, and calls of tools need its thoughts handed back: set hands_back = "calls" in its table'
    return None
