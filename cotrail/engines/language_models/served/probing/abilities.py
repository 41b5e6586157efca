"""What a served model can beyond answering: log probabilities, going on in a turn, tools, structure, sampling."""

import json
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.calls import Tool
from cotrail.core.generation import Sampling
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt, assistant, plain, user
from cotrail.engines.language_models.endpoint import Absent, Api, Continues, Endpoint, Omitted
from cotrail.engines.language_models.served.capabilities import endpoint_lacks
from cotrail.engines.language_models.served.probing.probe import Outcome, Probe
from cotrail.engines.language_models.served.tokenizer import Dialect

LETTERS, NEXT = "A B C D E F G H", "I"
"""A beginning that has one continuation, and the first letter of that."""

TOKENS = 64
"""The most tokens of a text, without its thoughts."""

_WEATHER = Tool(
    name="weather",
    description="Tells the weather of a city.",
    parameters='{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}',
)

_CAPITAL = (
    '{"type":"object","properties":{"capital":{"type":"string"}},"required":["capital"],"additionalProperties":false}'
)

_IN_ORDER: Mapping[Dialect, tuple[Continues, ...]] = {
    "vllm": ("vllm", "llama.cpp", "prefix"),
    "llama.cpp": ("llama.cpp", "vllm", "prefix"),
    "openai": ("prefix", "vllm", "llama.cpp"),
}

_CONTINUES: Mapping[Api, tuple[Continues, ...]] = {"anthropic": ("llama.cpp",), "gemini": ("llama.cpp",)}
"""Of APIs other than chats, which need no telling or can't."""


class Ability(Struct, frozen=True, kw_only=True):
    """What was found of an ability, as settings: how it continues, what it is without, what to omit."""

    continues: Continues | None = None
    without: Absent | None = None
    omits: Omitted | None = None
    why: str


def abilities(probe: Probe, endpoint: Endpoint, dialect: Dialect) -> list[Ability]:
    """What the model of this table can; only what it can't or needs a setting for is listed."""
    thinks = endpoint.thinking.may_think
    found = [
        _scores(probe, endpoint) if endpoint.api in ("completions", "chat") else None,
        _going_on(probe, endpoint, dialect)
        if endpoint.api not in ("completions", "responses") and not thinks
        else None,
        _tools(probe, endpoint) if endpoint_lacks(endpoint, "tools") is None else None,
        _structure(probe, endpoint),
        _sampling(probe, endpoint, dialect) if endpoint.api in ("completions", "chat") else None,
    ]
    return [each for each in found if each is not None]


def asked(endpoint: Endpoint, text: str) -> Prompt:
    """A question as the API wants it: a turn of the user's, or a text to be continued."""
    return Prompt(turns=(plain(f"Q: {text}\nA:") if endpoint.api == "completions" else user(text),))


def _scores(probe: Probe, endpoint: Endpoint) -> Ability | None:
    # A table of a model that thinks asks for none, but the field may be refused all the same.
    prompt = asked(endpoint, "What is the capital of France?")
    request = GenerationRequest(prompt, "end", TOKENS, scored=True)
    outcome = probe.ask("log probabilities", replace(endpoint, thinks="no", thought_tokens=0), request)
    if outcome.status:
        return Ability(omits="logprobs", why=outcome.why)
    told = outcome.result is not None or endpoint.thinking.may_think
    return None if told else Ability(without="scores", why=outcome.why)


def _going_on(probe: Probe, endpoint: Endpoint, dialect: Dialect) -> Ability | None:
    prompt = Prompt(turns=(user("Write the alphabet in capital letters."), assistant(LETTERS)))
    request = GenerationRequest(prompt, "stop", TOKENS)
    for continues in _CONTINUES.get(endpoint.api, _IN_ORDER[dialect]):
        outcome = probe.ask(f"going on in a turn ({continues})", replace(endpoint, continues=continues), request)
        if outcome.result is not None and outcome.result.text.lstrip().startswith(NEXT):
            return Ability(continues=continues, why=f"it went on with {outcome.result.text.strip()[:20]!r}")
    return None


def _tools(probe: Probe, endpoint: Endpoint) -> Ability | None:
    turns = (user("What is the weather in Oslo now? Call the tool `weather` to find out."),)
    request = GenerationRequest(Prompt(turns=turns, tools=(_WEATHER,)), "stop", 2 * TOKENS)
    outcome = probe.ask("tools", endpoint, request)
    if outcome.result is None:
        return Ability(without="tools", why=outcome.why)
    if outcome.result.calls:
        return None
    return Ability(without="tools", why=f"asked to call a tool, it wrote {outcome.result.text[:60]!r}")


def _structure(probe: Probe, endpoint: Endpoint) -> Ability | None:
    prompt = asked(endpoint, "What is the capital of France?")
    outcome = probe.ask("structured output", endpoint, GenerationRequest(prompt, "end", TOKENS, schema=_CAPITAL))
    if outcome.result is None:
        return Ability(without="structure", why=outcome.why)
    # In a conversation a model that isn't held to a schema is asked again; a text that is continued isn't.
    if endpoint.api != "completions" or _is_json(outcome):
        return None
    return Ability(without="structure", why=f"asked for JSON, it wrote {outcome.result.text[:60]!r}")


def _sampling(probe: Probe, endpoint: Endpoint, dialect: Dialect) -> Ability | None:
    if dialect == "openai":
        return Ability(without="sampling", why="it has no tokenizer beside it, as vLLM's and llama.cpp's servers have")
    sampling = Sampling(temperature=0.7, top_k=20, repetition_penalty=1.1)
    request = GenerationRequest(asked(endpoint, "What is the capital of France?"), "end", TOKENS, sampling)
    outcome = probe.ask("top_k and a repetition penalty", endpoint, request)
    return Ability(without="sampling", why=outcome.why) if outcome.result is None else None


def _is_json(outcome: Outcome) -> bool:
    try:
        return outcome.result is not None and isinstance(json.loads(outcome.result.text), dict)
    except ValueError:
        return False
