"""Error responses of a server, as errors of steps."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import msgspec

from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.errors import (
    BlockedError,
    CotrailError,
    PromptTooLongError,
    StepError,
    TransientStepError,
    UnavailableError,
)

BUSY = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
"""Statuses of a server, or a proxy before it, that takes no requests at the moment, whatever they ask for."""

_TOO_LONG = re.compile("context[_ ](?:length|size|window)|exceed_context|maximum context", re.IGNORECASE)


def step_error(endpoint: Endpoint, status: int, message: str) -> CotrailError:
    """The step's error for a status other than success."""
    sentence = f"{endpoint.url} answered {status}: {message}"
    match status:
        case 401 | 403:
            return BlockedError(_key_wanted(endpoint, status))
        case _ if 300 <= status < 400:
            return BlockedError(
                f"{endpoint.url} answered {status}, a redirect, which isn't followed: write the address that it leads "
                "to into the list of models, start the workers again, then `cotrail resume RUN`"
            )
        case 408:
            return TransientStepError(sentence)
        case _ if status in BUSY:
            return UnavailableError(sentence)
        case _ if 400 <= status < 500:
            return _too_long(endpoint, sentence) if _TOO_LONG.search(message) else StepError(sentence)
    return TransientStepError(sentence)


def message_in(body: bytes) -> str:
    """The error message in a response, in OpenAI's form or another."""
    try:
        content = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body.decode(errors="replace").strip() or "nothing further"
    return error_message(content)


def error_message(content: Any) -> str:
    """The message of a decoded response, or all of it where no field stands out."""
    while isinstance(content, Mapping):
        inner = next((content[key] for key in ("error", "message", "detail") if content.get(key)), None)
        if inner is None:
            break
        content = inner
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()


def seconds_to_wait(value: str | None) -> float | None:
    """Seconds to wait by a `Retry-After` header, which has seconds or a date; None where it is unusable."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return _seconds_until(value)
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _seconds_until(date: str) -> float | None:
    try:
        when = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return None
    return max((when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)


def _key_wanted(endpoint: Endpoint, status: int) -> str:
    if endpoint.key_variable is None:
        todo = "name the environment variable that holds its key as key_variable in the list of models"
    else:
        todo = f"set the environment variable {endpoint.key_variable} to a key that it takes"
    return f"{endpoint.url} answered {status}: {todo}, start the workers again, then `cotrail resume RUN`"


def _too_long(endpoint: Endpoint, sentence: str) -> PromptTooLongError:
    return PromptTooLongError(
        f"{sentence}; the list of models gives {endpoint.model} a context of {endpoint.context} tokens: give it the "
        "server's, or less where the server doesn't count tokens"
    )
