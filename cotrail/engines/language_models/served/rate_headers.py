"""Headers in which providers tell their limits, and how long to wait."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from cotrail.core.ports.rate_limiter import DIMENSIONS, Dimension, Limits

LONGEST_PAUSE = 3600.0
"""The most seconds that a header is believed."""

MOST_A_MINUTE = 1e9
"""The highest limit that a header is believed."""

LEAST_A_MINUTE: Mapping[Dimension, float] = {
    "requests": 1.0,
    "input_tokens": 100.0,
    "output_tokens": 100.0,
    "tokens": 100.0,
}
"""The lowest limits that a header is believed: by lower ones a single request would hold up all others for hours."""

_NAMES: Mapping[str, Dimension] = {
    "requests": "requests",
    "req-minute": "requests",  # Mistral's
    "tokens": "tokens",
    "tokens-minute": "tokens",
    "input-tokens": "input_tokens",
    "output-tokens": "output_tokens",
}

_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h|d)")
_DURATION = re.compile(rf"(?:{_PART.pattern}){{1,5}}")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def told_limits(headers: Mapping[str, str]) -> Limits:
    """The limits a minute that a response's headers tell, in their lower-case names; 0 for what they don't."""
    lowest: dict[str, float] = {}
    for name, dimension in _NAMES.items():
        found = (headers.get(f"x-ratelimit-limit-{name}"), headers.get(f"anthropic-ratelimit-{name}-limit"))
        values = [value for text in found if (value := _number(text)) is not None]
        values = [value for value in values if LEAST_A_MINUTE[dimension] <= value <= MOST_A_MINUTE]
        if values:
            lowest[dimension] = min([*values, *([lowest[dimension]] if dimension in lowest else [])])
    return Limits(**{dimension: lowest.get(dimension, 0.0) for dimension in DIMENSIONS})


def allows_nothing(headers: Mapping[str, str]) -> bool:
    """Return whether a limit of a minute is none at all, as Mistral tells it of models that a plan doesn't have."""
    return any(_number(headers.get(f"x-ratelimit-limit-{name}-minute")) == 0 for name in ("req", "tokens"))


def pause_asked(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait behind a refusal; None where the headers don't say, or name a time that is over.

    `retry-after-ms` comes before `retry-after`, as in OpenAI's client, and both before the times at which limits are
    reset, of which the latest of those that are used up counts.
    """
    # A server that refuses a request and says not to wait is wrong: it would refuse the next ones too.
    if milliseconds := _number(headers.get("retry-after-ms")):
        return min(milliseconds / 1000, LONGEST_PAUSE)
    if seconds := seconds_to_wait(headers.get("retry-after")):
        return min(seconds, LONGEST_PAUSE)
    resets = [
        reset
        for name in _NAMES
        if _number(_either(headers, name, "remaining")) == 0
        if (reset := _reset(headers, name))
    ]
    return min(max(resets), LONGEST_PAUSE) if resets else None


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


def _either(headers: Mapping[str, str], name: str, what: str) -> str | None:
    return headers.get(f"x-ratelimit-{what}-{name}") or headers.get(f"anthropic-ratelimit-{name}-{what}")


def _reset(headers: Mapping[str, str], name: str) -> float | None:
    """Seconds until a limit is reset: a duration as `1m30s`, seconds, or a date."""
    text = (_either(headers, name, "reset") or "").strip()
    if _DURATION.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if (seconds := _number(text)) is not None:
        return seconds
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _number(text: str | None) -> float | None:
    """A finite number of at least 0; None for anything else."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
