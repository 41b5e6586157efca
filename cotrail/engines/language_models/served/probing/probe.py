"""Requests to a server whose table isn't known yet, without the fields that it refuses, and what came of each."""

import re
import time
from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from cotrail import errors
from cotrail.common.humanize import duration
from cotrail.common.printable_text import cut
from cotrail.common.toml_files import read_toml
from cotrail.core.history import usage_of
from cotrail.core.money import Usage
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.ports.rate_limiter import Limits
from cotrail.core.results import Generated
from cotrail.engines.language_models.endpoint import Endpoint, Omitted
from cotrail.engines.language_models.served.model import ServedModel
from cotrail.engines.language_models.served.pacing import told_limits
from cotrail.engines.language_models.served.protocols.wire_protocols import PROTOCOLS
from cotrail.engines.language_models.served.refusals import Reported, refused_field
from cotrail.engines.language_models.stop_conditions import STOP_STRINGS
from cotrail.engines.language_models.token_counts import Dialect
from cotrail.engines.rate_limits import ProcessLimiter

MOST_REQUESTS = 48
"""The most requests that a model is sent; twenty are usual."""

LONGEST_PAUSE = 120.0
"""Seconds that a busy server is waited for before a request, at most."""

PAUSES = 3
"""How often a request is waited for."""

SHOWN = 160
"""Characters of a server's message that are shown."""

_NOTHING = Reported("")


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of a request.

    result: None where it wasn't answered. status: of the refusal, 0 where there was none; reported: what it says.
    problem: why there is no result. dialect: the server's extensions, as far as they are known.
    """

    result: Generated | None = None
    status: int = 0
    reported: Reported = _NOTHING
    problem: str = ""
    dialect: Dialect = "openai"

    @property
    def why(self) -> str:
        """Why there is no result, in short."""
        said = f"{self.status}: {self.reported.message}" if self.status else self.problem
        return cut(said, SHOWN)


class Probe:
    """Sends requests to one server, and keeps what they took and what its headers tell; see `Witness`.

    name: of the model; tell: takes a line on each request.
    requests: how many were sent; usage: the tokens of those that were answered; limits: a minute, 0 where untold.
    """

    def __init__(self, name: str, tell: Callable[[str], None]) -> None:
        self.requests = 0
        self.usage = Usage()
        self.limits = Limits()
        self.served_by = ""
        self._name = name
        self._tell = tell
        self._limiter = ProcessLimiter()
        self._status, self._reported = 0, _NOTHING

    def ask(self, what: str, endpoint: Endpoint, request: GenerationRequest) -> Outcome:
        """Sends a request as the model of this table would; what: what it is to find out.

        Raises InputError where the key is refused, the account is used up, nothing answers, or too much was asked.
        """
        if self.requests == MOST_REQUESTS:
            raise errors.InputError(
                f"{endpoint.url} was sent {MOST_REQUESTS} requests, and it still isn't clear what it takes"
            )
        self.requests += 1
        self._status, self._reported = 0, _NOTHING
        outcome = self._patiently(what, endpoint, request)
        self._tell(f"{self.requests}. {what}: {_in_words(outcome)}")
        return outcome

    def answered(self, headers: Mapping[str, str]) -> None:
        self.limits = Limits(
            **{
                name: max(getattr(self.limits, name), value)
                for name, value in zip(Limits.__struct_fields__, told_limits(headers).values, strict=True)
            }
        )

    def refused(self, status: int, reported: Reported) -> None:
        self._status, self._reported = status, reported

    def _patiently(self, what: str, endpoint: Endpoint, request: GenerationRequest) -> Outcome:
        for _ in range(PAUSES):
            try:
                return self._outcome(endpoint, request)
            except errors.BusyError as error:
                if not error.seconds or error.seconds > LONGEST_PAUSE:
                    raise errors.InputError(f"{error}; ask again later") from error
                self._tell(f"{self.requests}. {what}: {error}; waiting for {duration(error.seconds)}")
                time.sleep(error.seconds)
        raise errors.InputError(f"{endpoint.url} has no room for further requests; ask again later")

    def _outcome(self, endpoint: Endpoint, request: GenerationRequest) -> Outcome:
        try:
            model = ServedModel(endpoint, self._name, PROTOCOLS[endpoint.api], self._limiter, self)
            result = model.generate(request)
        except errors.QuotaError as error:
            raise errors.InputError(
                f"{self._refusal(endpoint)}; the account is used up: add to it, then ask again"
            ) from error
        except errors.BusyError:
            raise
        except errors.UnavailableError as error:
            raise errors.InputError(
                f"{error}; check the url in its table, and that the server runs, then ask again"
            ) from error
        except (errors.BlockedError, errors.StepError, errors.TransientStepError) as error:
            if isinstance(error, errors.BlockedError) and self._is_about_the_key:
                raise errors.InputError(f"{self._refusal(endpoint)}; {_key_wanted(endpoint)}") from error
            return Outcome(status=self._status, reported=self._reported, problem=str(error))
        self._count(result)
        return Outcome(result=result, dialect=model.dialect)

    @property
    def _is_about_the_key(self) -> bool:
        reported = self._reported
        if self._status == HTTPStatus.BAD_REQUEST:
            return reported.is_about_the_key
        refused = self._status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
        return refused and not refused_field(reported.param, reported.message)

    def _count(self, result: Generated) -> None:
        self.served_by = result.served_by or self.served_by
        self.usage += usage_of(result)

    def _refusal(self, endpoint: Endpoint) -> str:
        return f"{endpoint.url} answered {self._status}: {cut(self._reported.message, SHOWN)}"


def _key_wanted(endpoint: Endpoint) -> str:
    if endpoint.key_variable is None:
        return "name the environment variable that holds its key as key_variable in its table"
    return f"set the environment variable {endpoint.key_variable} to a key that it takes"


def _in_words(outcome: Outcome) -> str:
    result = outcome.result
    if result is None:
        return outcome.why
    thought = f", {result.thought_tokens:,} of them thoughts" if result.thought_tokens else ""
    return f"answered, {result.prompt_tokens:,} tokens read, {result.generated_tokens:,} written{thought}"


# Which field of a request a refusal is about.

Field = Omitted | Literal["limit", "effort"]
"""A field that a request can do without, the one that bounds its text, or the one that says how much to think."""

NAMES: Mapping[str, Any] = read_toml(Path(__file__).parent.with_name("names.toml"))
_NAMES: Mapping[Field, tuple[str, ...]] = NAMES["fields"]

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
