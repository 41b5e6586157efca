"""What a served model can beyond answering: log probabilities, going on in a turn, tools, structure, sampling."""

import json
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.calls import Tool
from cotrail.core.generation import Sampling
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt, assistant, plain, user
from cotrail.core.results import Generated
from cotrail.engines.language_models.endpoint import LEAST_BUDGET, Absent, Api, Continues, Endpoint, Omitted
from cotrail.engines.language_models.served.capabilities import endpoint_lacks
from cotrail.engines.language_models.served.probing.probe import Outcome, Probe
from cotrail.engines.language_models.thinking import Thinks, shown_thought
from cotrail.engines.language_models.token_counts import Dialect

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
    is_able = outcome.result is not None or endpoint.thinking.may_think
    return None if is_able else Ability(without="scores", why=outcome.why)


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
        return Ability(without="sampling", why="it has no tokenizer with it, as vLLM's and llama.cpp's servers have")
    sampling = Sampling(temperature=0.7, top_k=20, repetition_penalty=1.1)
    request = GenerationRequest(asked(endpoint, "What is the capital of France?"), "end", TOKENS, sampling)
    outcome = probe.ask("top_k and a repetition penalty", endpoint, request)
    return Ability(without="sampling", why=outcome.why) if outcome.result is None else None


def _is_json(outcome: Outcome) -> bool:
    try:
        return outcome.result is not None and isinstance(json.loads(outcome.result.text), dict)
    except ValueError:
        return False


# Where a served model's thoughts are, by what it writes to a question that takes a thought.

SIZES = (2048, 8192)
"""The most tokens of a text that wasn't at its end before; its thought may not have been either."""


class ThoughtPlace(Struct, frozen=True, kw_only=True):
    """Where the thoughts are, and how that was seen."""

    thinks: Thinks
    why: str


def looking(endpoint: Endpoint) -> Endpoint:
    """The table by which all that the model writes is seen as it is."""
    # Of the other APIs a table that says nothing asks for no thoughts.
    by_request = endpoint.api not in ("completions", "chat") and endpoint.thinking.may_think
    thinks = endpoint.thinks if by_request else "no"
    least = LEAST_BUDGET if endpoint.api == "anthropic" and by_request and not endpoint.effort else 0
    return replace(endpoint, thinks=thinks, thought_tokens=least)


def thought_place(probe: Probe, endpoint: Endpoint, request: GenerationRequest, first: Generated) -> ThoughtPlace:
    """Where the thoughts are; first: what it wrote to the request. Texts without an end are asked for again, longer."""
    result, most = first, request.max_tokens
    for size in SIZES if endpoint.api != "completions" else ():
        if _seen(result) is not None or result.ended not in ("length", "thoughts"):
            break
        most = min(size, endpoint.context // 2)
        again = probe.ask("a longer text", endpoint, replace(request, max_tokens=most))
        result = again.result or result
    place = _seen(result) or _unseen(result, most)
    if place.thinks == "hidden" and endpoint.api in ("anthropic", "gemini"):
        return _shown_if_asked(probe, endpoint, request) or place
    return place


def can_think(probe: Probe, endpoint: Endpoint, request: GenerationRequest) -> str:
    """The setting that has a model of Anthropic's think that doesn't by default; empty where there is none."""
    for setting, table in (
        ('thinks = "field" and effort = "low"', {"effort": "low"}),
        ('thinks = "field" and thought_tokens = 8000', {"thought_tokens": LEAST_BUDGET}),
    ):
        tried = replace(endpoint, thinks="field", **table)
        if probe.ask("thinking on demand", tried, request).result is not None:
            return setting
    return ""


def _seen(result: Generated) -> ThoughtPlace | None:
    """The place of thoughts that are there to be seen, or counted."""
    if result.thoughts:
        return ThoughtPlace(thinks="field", why="its thoughts came in fields of their own")
    match shown_thought(result.raw):
        case (mark, "tags"):
            return ThoughtPlace(thinks="tags", why=f"its text began with {mark}")
        case (mark, "inside"):
            return ThoughtPlace(thinks="inside", why=f"its text had {mark}, and nothing that opens it")
    if result.thought_tokens:
        counted = f"{result.thought_tokens:,} tokens of thoughts were counted, and none shown"
        return ThoughtPlace(thinks="hidden", why=counted)
    return None


def _unseen(result: Generated, most: int) -> ThoughtPlace:
    """What a text without a visible thought tells."""
    if result.ended == "thoughts":
        return ThoughtPlace(thinks="hidden", why=f"{most:,} tokens were used up without a text")
    if result.ended == "length":
        why = f'no thought was seen, but no end of its text either within {most:,} tokens; if it thinks, set "inside"'
        return ThoughtPlace(thinks="no", why=why)
    return ThoughtPlace(thinks="no", why="no thought was seen or counted")


def _shown_if_asked(probe: Probe, endpoint: Endpoint, request: GenerationRequest) -> ThoughtPlace | None:
    """Anthropic and Gemini show thoughts, in short, to those who ask for them."""
    shown = probe.ask("its thoughts", replace(endpoint, thinks="field"), request).result
    if shown is None or not shown.thoughts:
        return None
    return ThoughtPlace(thinks="field", why="its thoughts came where they were asked for")
