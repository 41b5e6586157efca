"""What the answers of servers that are sent texts have in common."""

from collections.abc import Iterable
from typing import TypeVar

from msgspec import Struct

from cotrail.errors import TransientStepError

Answer = TypeVar("Answer")

MOST_SHOWN = 10
"""Indexes that an error names at most."""


class Usage(Struct, frozen=True):
    """What a request took, as servers say it."""

    total_tokens: int | None = None


class Metered(Struct, frozen=True):
    """An answer that may say what its request took."""

    usage: Usage | None = None


def by_index(answers: Iterable[tuple[int, Answer]], count: int) -> list[Answer]:
    """Answers in the order of the texts that they are about; raises TransientStepError unless there is one for each."""
    pairs = list(answers)
    if sorted(index for index, _ in pairs) != list(range(count)):
        given = ", ".join(str(index) for index, _ in pairs[:MOST_SHOWN]) + ", ..." * (len(pairs) > MOST_SHOWN)
        raise TransientStepError(
            f"the server was sent {count} texts, numbered from 0, and answered {len(pairs)}: {given or 'none'}"
        )
    return [answer for _, answer in sorted(pairs, key=lambda pair: pair[0])]
