"""Error responses of a server, as errors of steps.

What Google's error responses say in their details, in the form of `google.rpc`.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from cotrail.engines.server_address import ServerAddress
from cotrail.errors import (
    BlockedError,
    BusyError,
    CotrailError,
    PromptTooLongError,
    QuotaError,
    StepError,
    TransientStepError,
    UnavailableError,
)

LONGEST_PAUSE = 3600.0
"""The most seconds that a header or a message is believed."""

# Fields of requests that a server refuses, and the setting in the model's table that each of them calls for.

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_SETTINGS: Mapping[str, str] = _TABLES["settings"]
_NAMES = "|".join(sorted(map(re.escape, _SETTINGS), key=len, reverse=True))
_NAMED = re.compile(rf"(?:^|[`'\"]|: )({_NAMES})(?=[`'\"]|:|\.?$)|\b(temperature|top_p|(?:top_)?logprobs)\b")
"""A field that a message names: within quotes, before or behind a colon, or by a name that is no word of prose."""

_REFUSES = re.compile(
    r"unsupported|(?:not|n't) (?:support|permitted|allowed|compatible)|deprecated|unrecognized|unknown|unexpected"
    r"|cannot both|only be set",
    re.IGNORECASE,
)


def refused_field(param: str, message: str) -> str:
    """The field of the request that a server refuses, as far as the model's table decides on it; empty otherwise.

    param: what the server says it is about; message: in which the field stands where it doesn't.
    """
    if param:
        return param if param in _SETTINGS else ""
    named = _NAMED.search(message) if _REFUSES.search(message) else None
    return (named[1] or named[2]) if named else ""


def setting_for(field: str) -> str:
    """What to do about a refused field, as an imperative."""
    setting = _SETTINGS.get(field)
    return f"{setting} in its table of the list of models" if setting else "correct its table of the list of models"


def located(content: Any) -> str:
    """The field that an error in FastAPI's form is about; empty where it has another form."""
    while isinstance(content, Mapping):
        content = next((content[name] for name in ("detail", "error", "message") if content.get(name)), None)
    first = content[0] if isinstance(content, list) and content else None
    place = first.get("loc") if isinstance(first, Mapping) else None
    return str(place[1]) if isinstance(place, list) and len(place) > 1 else ""


MOST_DETAILS = 20
"""The most details, and quotas of one, that are read."""

_SECONDS = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)s")


def _details_of(error: Mapping[str, Any]) -> tuple[tuple[str, ...], float | None]:
    """The reason, as `API_KEY_INVALID`, and the quotas that are used up; and the seconds to wait, None if unsaid."""
    given = error.get("details")
    details = [each for each in given[:MOST_DETAILS] if isinstance(each, Mapping)] if isinstance(given, list) else []
    pauses = [seconds for each in details if (seconds := _seconds(each.get("retryDelay"))) is not None]
    return tuple(kind for each in details for kind in _kinds(each)), max(pauses, default=None)


def _kinds(detail: Mapping[str, Any]) -> Iterator[str]:
    violations = detail.get("violations")
    of_quotas = violations[:MOST_DETAILS] if isinstance(violations, list) else []
    named = [detail.get("reason"), *(each.get("quotaId") for each in of_quotas if isinstance(each, Mapping))]
    yield from (each for each in named if isinstance(each, str) and each)


def _seconds(delay: Any) -> float | None:
    """Seconds of a duration as `37s`; None for anything else, and for none at all."""
    found = _SECONDS.fullmatch(delay) if isinstance(delay, str) else None
    return min(float(found[1]), LONGEST_PAUSE) if found and float(found[1]) else None


OVERLOADED = 529
"""Anthropic's status of a server that has too much to do."""

BUSY = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
    OVERLOADED,
)
"""Statuses of a server, or a proxy before it, that takes no requests at the moment, whatever they ask for."""

ATTEMPTS = 3
"""Attempts of a request to a server that is away or busy, before its step is given back until the server is
available."""

_TOO_LONG = re.compile("context[_ ](?:length|size|window)|exceed_context|maximum context", re.IGNORECASE)

_CROWDED = (HTTPStatus.TOO_MANY_REQUESTS, OVERLOADED)
"""Statuses of a server that isn't away, but takes no further requests of this account's."""

NOTHING_ALLOWED = "nothing_allowed"
"""The kind of a refusal whose headers tell limits of none at all."""

_QUOTA = ("insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active", NOTHING_ALLOWED)
"""Codes of an account that is used up."""

_USED_UP = re.compile(
    r"credit balance is too low|all (?:available|of your) credits|insufficient (?:balance|credits|funds)"
    r"|spending limit|out of credits|not enough credits|exceeds your plan's",
    re.IGNORECASE,
)
"""What messages of a refusal say of such an account whose codes don't tell: Anthropic's, xAI's and others'."""

_A_DAY = re.compile("PerDay")
"""Of Gemini's quotas those that waiting for a minute doesn't help, whatever pause it asks for."""

_BAD_KEY = re.compile(
    r"API_KEY_INVALID|api[ _-]?key (?:is )?(?:not valid|not found|expired|invalid)|(?:incorrect|invalid) api[ _-]?key",
    re.IGNORECASE,
)
"""What Gemini and xAI say of a key in a 400."""

_OF_THE_REQUEST = re.compile("logprob|parameter|moderat|flagged|content policy|safety", re.IGNORECASE)
"""What a 403 is about that isn't about the key."""

_REFUSED_FIELDS = ("unsupported_parameter", "unsupported_value")


class Reported(Struct, frozen=True):
    """What an error response says: its message, its type and code, and the field of the request that it is about.

    kinds: also Google's reason and quotas; pause: the seconds that it asks to wait, None where it doesn't.
    """

    message: str
    kinds: tuple[str, ...] = ()
    param: str = ""
    pause: float | None = None

    @property
    def is_used_up(self) -> bool:
        """Return whether it says that the account may ask for nothing more, however long one waits."""
        return bool(set(self.kinds) & set(_QUOTA)) or bool(_USED_UP.search(self.message))

    @property
    def is_over_for_today(self) -> bool:
        """Return whether a quota of the day is used up."""
        return any(map(_A_DAY.search, self.kinds))

    @property
    def is_about_the_key(self) -> bool:
        """Return whether a bad request is one for its key."""
        return any(map(_BAD_KEY.search, (self.message, *self.kinds)))


def step_error(
    endpoint: ServerAddress, status: int, reported: Reported | str, wait: float | None = None
) -> CotrailError:
    """The step's error for a status other than success; wait: the pause that the server asks for, in seconds."""
    said = Reported(reported) if isinstance(reported, str) else reported
    wait = said.pause if wait is None else wait
    sentence = f"{endpoint.url} answered {status}: {said.message}"
    if status == HTTPStatus.PAYMENT_REQUIRED or (400 <= status < 500 and said.is_used_up):
        return QuotaError(
            f"{sentence}; the account is used up, and waiting doesn't help: add to it, then `cotrail resume RUN`"
        )
    if status in _CROWDED and said.is_over_for_today:
        return QuotaError(
            f"{sentence}; a quota of the day is used up: have it raised, or wait for the next day, then "
            "`cotrail resume RUN`"
        )
    if status in _CROWDED or (status == HTTPStatus.SERVICE_UNAVAILABLE and wait is not None):
        return BusyError(sentence, wait)
    if status in BUSY:
        return UnavailableError(sentence, wait)
    return _lasting(endpoint, status, said, sentence)


def _lasting(endpoint: ServerAddress, status: int, said: Reported, sentence: str) -> CotrailError:
    """The error for a status that waiting doesn't change."""
    field = refused_field(said.param, said.message)
    match status:
        case 400 if said.is_about_the_key:
            return BlockedError(_key_wanted(endpoint, status))
        case 400 | 403 | 422 if field and not _TOO_LONG.search(said.message):
            return BlockedError(_field_refused(sentence, field))
        case 403 if _OF_THE_REQUEST.search(said.message):
            return StepError(sentence)
        case 401 | 403:
            return BlockedError(_key_wanted(endpoint, status))
        case _ if 300 <= status < 400:
            return BlockedError(
                f"{endpoint.url} answered {status}, a redirect, which isn't followed: write the address that it leads "
                f"to into {endpoint.file}, start the workers again, then `cotrail resume RUN`"
            )
        case 404 if not urlsplit(endpoint.url).path:
            return StepError(f"{sentence}; the url in its table has no path, and those of most servers end in /v1")
        case 408:
            return TransientStepError(sentence)
        case 400 | 422 if set(said.kinds) & set(_REFUSED_FIELDS):
            return BlockedError(_field_refused(sentence, ""))
        case _ if 400 <= status < 500:
            is_too_long = _TOO_LONG.search(said.message)
            return PromptTooLongError(f"{sentence}; {endpoint.for_long_texts}") if is_too_long else StepError(sentence)
    return TransientStepError(sentence)


def _field_refused(sentence: str, field: str) -> str:
    return f"{sentence}; {setting_for(field)}, start the workers again and submit the run again"


def status_meant(kind: str) -> int:
    """The status that the type of an error stands for; 500 where it isn't known."""
    status: int = _TABLES["statuses"].get(kind, HTTPStatus.INTERNAL_SERVER_ERROR)
    return status


def reported_in(body: bytes) -> Reported:
    """What an error response says, in OpenAI's form or another."""
    try:
        content = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Reported(body.decode(errors="replace").strip() or "nothing further")
    return reported_of(content)


def reported_of(content: Any) -> Reported:
    """What a decoded error response says."""
    if isinstance(content, list) and len(content) == 1:  # as Gemini's layer for OpenAI's clients answers
        content = content[0]
    error = content.get("error", content) if isinstance(content, Mapping) else content
    fields = error if isinstance(error, Mapping) else {}
    further, pause = _details_of(fields)
    kinds = tuple(str(fields[name]) for name in ("code", "type", "status") if fields.get(name))
    param = str(fields.get("param") or "") or located(content)
    return Reported(error_message(content), (*kinds, *further), param, pause)


def error_message(content: Any) -> str:
    """The message of a decoded response, or all of it where no field stands out."""
    while isinstance(content, Mapping):
        inner = next((content[key] for key in ("error", "message", "detail") if content.get(key)), None)
        if inner is None:
            break
        content = inner
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()


def _key_wanted(endpoint: ServerAddress, status: int) -> str:
    if endpoint.key_variable is None:
        todo = f"name the environment variable that holds its key as key_variable in {endpoint.file}"
    else:
        todo = f"set the environment variable {endpoint.key_variable} to a key that it takes"
    return f"{endpoint.url} answered {status}: {todo}, start the workers again, then `cotrail resume RUN`"
