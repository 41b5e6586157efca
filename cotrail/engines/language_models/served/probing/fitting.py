"""Taking fields out of a request until a server answers it."""

import re
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.ports.language_model import GenerationRequest
from cotrail.engines.language_models.endpoint import Endpoint, Omitted
from cotrail.engines.language_models.served.probing.probe import Outcome, Probe
from cotrail.engines.language_models.served.protocols.wire_protocols import PROTOCOLS
from cotrail.engines.language_models.served.refusals import Reported
from cotrail.engines.language_models.stop_conditions import STOP_STRINGS

# Which field of a request a refusal is about.

Field = Omitted | Literal["limit", "effort"]
"""A field that a request can do without, the one that bounds its text, or the one that says how much to think."""

_NAMES: Mapping[Field, tuple[str, ...]] = {
    "limit": ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"),
    "effort": ("reasoning_effort", "effort", "thinking_level", "thinkingLevel"),
    "stream_options": ("stream_options", "include_usage"),
    "stream": ("stream", "streaming"),
    "logprobs": ("logprobs", "top_logprobs"),
    "seed": ("seed",),
    "stop": ("stop", "stop_sequences", "stopSequences"),
    "top_p": ("top_p", "topP"),
    "temperature": ("temperature",),
}
"""The names under which APIs have them; of several that a message names, the earlier ones are left out first."""


_WORD = re.compile(r"\w+")


class Blame(Struct, frozen=True, kw_only=True):
    """A field, and whether the refusal leaves no doubt that it is this one alone."""

    field: Field
    certain: bool


def blamed(reported: Reported, sent: Collection[Field]) -> Blame | None:
    """The field that a refusal is about, by its `param`, else by its message; None where neither names one.

    sent: the fields that the request had.
    """
    parameter = reported.param.rpartition(".")[2]
    for field in _NAMES:
        if field in sent and parameter in _NAMES[field]:
            return Blame(field=field, certain=True)
    words = set(_WORD.findall(reported.message))
    named = [field for field in _NAMES if field in sent and not words.isdisjoint(_NAMES[field])]
    return Blame(field=named[0], certain=len(named) == 1) if named else None


ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)
"""Statuses of a server that doesn't have this API, or this model behind it."""

_OPTIONAL: tuple[Omitted, ...] = ("temperature", "top_p", "seed", "stop", "stream_options", "stream")

_LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")
"""Names of the field that bounds a text, in OpenAI's completions and chats."""

_MOST_REFUSALS = 10

LEAST_EFFORT = "low"
"""The effort that a model is asked for that takes no budget."""


class Fitted(Struct, frozen=True, kw_only=True):
    """A table that a request was answered by, if any was, with the outcome of the last one.

    reasons: why fields are omitted or named otherwise, by `Field`.
    """

    endpoint: Endpoint
    outcome: Outcome
    reasons: Mapping[Field, str]


def fit(probe: Probe, what: str, endpoint: Endpoint, request: GenerationRequest) -> Fitted:
    """The table without the fields for which a server refuses the request; what it omits already stays so."""
    reasons: dict[Field, str] = {}
    doubtful: list[Omitted] = []
    for _ in range(_MOST_REFUSALS):
        outcome = probe.ask(what, _with_stop(endpoint, request), request)
        if outcome.result is not None or outcome.status in ABSENT:
            break
        changed = _mended(endpoint, outcome, reasons, doubtful)
        if changed is None:
            break
        endpoint = changed
    fitted = Fitted(endpoint=endpoint, outcome=outcome, reasons=reasons)
    return _put_back(probe, fitted, request, doubtful) if outcome.result is not None and doubtful else fitted


def _mended(
    endpoint: Endpoint, outcome: Outcome, reasons: dict[Field, str], doubtful: list[Omitted]
) -> Endpoint | None:
    """The table without what a refusal is about; None where nothing is left to take out.

    reasons, doubtful: what is taken out is added to these; doubtful are fields that may be innocent.
    """
    if _takes_no_budget(endpoint, outcome):
        reasons["effort"] = outcome.why
        return replace(endpoint, effort=LEAST_EFFORT)
    sent = _sent(endpoint)
    blame = blamed(outcome.reported, sent) if outcome.status else None
    if blame is None:
        # A server that can't stream may well answer in another form.
        taken = [field for field in _OPTIONAL if field in sent and (outcome.status or field.startswith("stream"))]
        doubtful += taken
        reasons |= dict.fromkeys(taken, outcome.why)
        return replace(endpoint, omits=(*endpoint.omits, *taken)) if taken else None
    if blame.field in reasons and blame.field in ("limit", "effort"):
        return None
    reasons[blame.field] = outcome.why
    match blame.field:
        case "limit":
            used = endpoint.limit_field or _LIMIT_FIELDS[0]
            return replace(endpoint, limit_field=next(each for each in _LIMIT_FIELDS if each != used))
        case "effort":
            return replace(endpoint, effort="")
    doubtful += [] if blame.certain else [blame.field]
    return replace(endpoint, omits=(*endpoint.omits, blame.field))


def _takes_no_budget(endpoint: Endpoint, outcome: Outcome) -> bool:
    """Return whether a model of Anthropic's refuses a budget of thoughts, as those do that only think adaptively."""
    sent = endpoint.api == "anthropic" and endpoint.thinking.may_think and not endpoint.effort
    return sent and endpoint.thought_tokens > 0 and "thinking" in outcome.reported.message


def _put_back(probe: Probe, fitted: Fitted, request: GenerationRequest, doubtful: list[Omitted]) -> Fitted:
    """The table with those of its omitted fields that the server takes after all."""
    endpoint, reasons, outcome = fitted.endpoint, dict(fitted.reasons), fitted.outcome
    for field in dict.fromkeys(reversed(doubtful)):
        if field == "stream_options" and "stream" in endpoint.omits:
            endpoint = _without_omission(endpoint, field)
            del reasons[field]
            continue
        tried = _without_omission(endpoint, field)
        again = probe.ask(f"{field} alone", _with_stop(tried, request), request)
        if again.result is None:
            reasons[field] = again.why
        else:
            endpoint, outcome = tried, again
            del reasons[field]
    return Fitted(endpoint=endpoint, outcome=outcome, reasons=reasons)


def _without_omission(endpoint: Endpoint, field: Omitted) -> Endpoint:
    return replace(endpoint, omits=tuple(each for each in endpoint.omits if each != field))


def _sent(endpoint: Endpoint) -> set[Field]:
    """The fields that a request has, as far as they can be left out."""
    api, thinks = endpoint.api, endpoint.thinking.may_think
    never: set[Field] = {*PROTOCOLS[api].never_sent, *endpoint.omits}
    if thinks and api in ("anthropic", "responses"):
        never |= {"temperature", "top_p"}
    if "stream" in never:
        never.add("stream_options")
    renamed: set[Field] = {"limit"} if api in ("completions", "chat") else set()
    effort: set[Field] = {"effort"} if endpoint.effort else set()
    return ({*_OPTIONAL} | renamed | effort) - never


def _with_stop(endpoint: Endpoint, request: GenerationRequest) -> Endpoint:
    """The table by which a model that thinks is sent stop strings too, which it usually isn't."""
    if not endpoint.thinking.may_think or "stop" in endpoint.omits or endpoint.api not in ("completions", "chat"):
        return endpoint
    return replace(endpoint, extra={"stop": list(STOP_STRINGS[request.until])} | endpoint.extra)
