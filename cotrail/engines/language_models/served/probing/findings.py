"""What was learned of a served model, as settings of its table with their reasons."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cotrail.core.money import Usage
from cotrail.core.ports.rate_limiter import DIMENSIONS, Limits


class Findings(Struct, frozen=True, kw_only=True):
    """What was learned.

    settings: of the model's table, which are to stand there as they are; None for what is to stand there no more.
    reasons: why, in lines, by the settings' names. requests, usage: what asking took. notes: further sentences.
    """

    settings: Mapping[str, Any]
    reasons: Mapping[str, Sequence[str]]
    requests: int
    usage: Usage
    notes: tuple[str, ...]


def usage_in_words(usage: Usage) -> str:
    """What a server reports of the tokens that it counts."""
    if usage.estimated == usage.calls:
        return "It reports no tokens, which are estimated then."
    kinds = {
        "read": usage.input_tokens,
        "written": usage.output_tokens,
        "thought": usage.thought_tokens,
        "read from a cache": usage.cached_tokens,
        "written to a cache": usage.cache_written_tokens,
    }
    some = f", but not in {usage.estimated} of {usage.calls} answers" if usage.estimated else ""
    return f"It reports the tokens {', '.join(name for name, count in kinds.items() if count)}{some}."


def limits_in_words(limits: Limits) -> str:
    """The limits that headers tell, which need no setting; empty where they tell none."""
    pairs = zip(DIMENSIONS, limits.values, strict=True)
    told = [f"{value:,.0f} {name.replace('_', ' ')}" for name, value in pairs if value]
    return f"Its headers tell limits of {', '.join(told)} a minute, which are kept without a setting." if told else ""
