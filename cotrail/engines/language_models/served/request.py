"""Orders of generations, and the fields of requests that OpenAI's APIs and the servers that speak them share."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from cotrail.core.generation import Sampling
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.stop_conditions import STOP_STRINGS
from cotrail.engines.language_models.token_counts import Dialect
from cotrail.errors import BlockedError

_DIALECTS: dict[Dialect, dict[str, Any]] = {
    "openai": {},
    "llama.cpp": {"samplers": ["temperature"], "cache_prompt": True, "timings_per_token": True},
    # Without these vLLM applies the sampling that the model's authors recommend, which changes even greedy texts.
    "vllm": {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
}
"""Fields by dialect: temperature alone decides the sampling unless more is asked for, and a stream that is cut off has
reported its tokens before."""


class Order(Struct, frozen=True, kw_only=True):
    """A generation as a server is asked for it.

    prompt: as it is packed; text: the same as text or tokens, for completions. request: with the tokens of thoughts in
    its `max_tokens`. streams: whether the answer is a stream of events.
    """

    endpoint: Endpoint
    dialect: Dialect
    prompt: Prompt
    request: GenerationRequest
    text: str | list[int] = ""
    streams: bool = True

    @property
    def withholds_tools(self) -> bool:
        """Whether the model may call none of the tools that it is shown, as its earlier turns called them."""
        return bool(self.prompt.tools) and not self.request.calls


def generation_fields(order: Order, stops: tuple[str, ...]) -> dict[str, Any]:
    """The fields of a body in addition to its prompt; stops: the stop strings that the server is given.

    Raises BlockedError where the dialect lacks what is asked for.
    """
    endpoint, request, dialect = order.endpoint, order.request, order.dialect
    sampling = request.sampling
    fields = {
        "model": endpoint.model,
        (endpoint.limit_field or "max_tokens"): request.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        **_streaming(order),
        **({"stop": list(stops)} if stops else {}),
        **_DIALECTS[dialect],
        **_unusual(endpoint, dialect, sampling),
        **_thinking(endpoint, dialect),
    }
    return completed(endpoint, fields)


def completed(endpoint: Endpoint, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a body without those that the table omits, and with its further ones.

    Of an object that both have, the further fields are added to the others.
    """
    body = {name: value for name, value in fields.items() if name not in endpoint.omits}
    for name, value in endpoint.extra.items():
        own = body.get(name)
        body[name] = own | value if isinstance(own, dict) and isinstance(value, dict) else value
    return body


def told_stops(endpoint: Endpoint, request: GenerationRequest) -> tuple[str, ...]:
    """The stop strings that a server can be given."""
    # Servers look for them in thoughts too. They hold back what may begin one, and llama.cpp's then leaves out log
    # probabilities.
    if endpoint.thinking.may_think or "stop" in endpoint.omits or request.scored:
        return ()
    return STOP_STRINGS[request.until]


def tokenizer_request(endpoint: Endpoint, text: str, *, begins: bool = True) -> dict[str, Any]:
    """The body that asks for a text's tokens, in vLLM's fields and in llama.cpp's; each ignores the other's.

    begins: whether the text begins a prompt, before which some models have a token.
    """
    body = {"model": endpoint.model, "prompt": text, "content": text, "add_special": begins}
    return body if begins else body | {"add_special_tokens": False}


def _streaming(order: Order) -> dict[str, Any]:
    if not order.streams:
        return {}
    running = {"continuous_usage_stats": True} if order.dialect == "vllm" else {}
    return {"stream": True, "stream_options": {"include_usage": True} | running}


def _thinking(endpoint: Endpoint, dialect: Dialect) -> dict[str, Any]:
    fields: dict[str, Any] = {"chat_template_kwargs": endpoint.template} if endpoint.template else {}
    if endpoint.effort:
        fields["reasoning_effort"] = endpoint.effort
    if dialect == "vllm" and endpoint.thinks == "field" and endpoint.thought_tokens:
        fields["thinking_token_budget"] = endpoint.thought_tokens
    return fields


def _unusual(endpoint: Endpoint, dialect: Dialect, sampling: Sampling) -> dict[str, Any]:
    """The fields that a dialect needs in addition, or that differ, for sampling that isn't by temperature alone."""
    top_k, penalty = sampling.top_k, sampling.repetition_penalty
    match dialect:
        case "vllm":
            return ({"top_k": top_k} if top_k else {}) | {"repetition_penalty": penalty}
        case "llama.cpp":
            return llama_cpp_sampling(sampling, endpoint.context)
    if top_k or penalty != 1:
        raise BlockedError(
            f"{endpoint.url} speaks OpenAI's protocol alone, which has no top_k and no repetition penalty: take a "
            'server of vLLM or llama.cpp, or a model that cotrail\'s own workers run; with `without = ["sampling"]` in '
            "the model's table such runs are refused as they are submitted"
        )
    return {}


def llama_cpp_sampling(sampling: Sampling, context: int) -> dict[str, Any]:
    """Samplers in the order of the other engines, which isn't llama.cpp's own; by default it applies others too."""
    top_k, top_p, penalty = sampling.top_k, sampling.top_p, sampling.repetition_penalty
    wanted = {"penalties": penalty != 1, "temperature": True, "top_k": bool(top_k), "top_p": top_p < 1}
    fields: dict[str, Any] = {"samplers": [sampler for sampler, is_wanted in wanted.items() if is_wanted]}
    if top_k:
        fields["top_k"] = top_k
    # The penalty is for all tokens that have occurred, and not for the last 64 alone.
    return fields | ({"repeat_penalty": penalty, "repeat_last_n": context} if penalty != 1 else {})
