"""Where a served model's thoughts are, by what it writes to a question that takes a thought."""

from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.results import Generated
from cotrail.engines.language_models.endpoint import LEAST_BUDGET, Endpoint
from cotrail.engines.language_models.served.probing.probe import Probe
from cotrail.engines.language_models.thinking import Thinks
from cotrail.engines.language_models.thoughts import MARKS

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
    for marks in MARKS:
        before, closing, _ = result.raw.partition(marks.closing)
        if result.raw.lstrip().startswith(marks.opening):
            return ThoughtPlace(thinks="tags", why=f"its text began with {marks.opening}")
        if closing and marks.opening not in before:
            return ThoughtPlace(thinks="inside", why=f"its text had {marks.closing}, and nothing that opens it")
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
