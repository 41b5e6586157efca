"""Explanation of a digest that doesn't match: the column that was changed, found by trying values of other rows."""

from collections.abc import Callable, Iterable, Mapping

from cotrail.audit.records import Row

RowDigest = Callable[[Row], str]

HASHING_BUDGET, LEAST_CHARGE = 2**29, 4096
"""Budget of characters to hash, worth a few seconds, and the minimum charge for one guess.

Without a budget, a forged bundle could make explaining its findings take hours."""


class GuessBudget:
    """Remaining budget for guessing the original values of changed rows."""

    def __init__(self) -> None:
        self._left = HASHING_BUDGET

    def may(self, row: Row) -> bool:
        """Charge one digest of this row; return whether the budget allows it."""
        self._left -= LEAST_CHARGE + sum(len(value) for value in row.values() if value is not None)
        return self._left > 0


def changed_column(
    row: Row, recorded: str, digest: RowDigest, values: Mapping[str, Iterable[str | None]], guesses: GuessBudget
) -> tuple[str, str | None] | None:
    """Find the column and its original value with which the row has the recorded digest; None where none explains it.

    values: candidate values of each column, from other rows.
    """
    for name, candidates in values.items():
        for value in candidates:
            if value == row.get(name):
                continue
            if not guesses.may(row):
                return None
            if digest({**row, name: value}) == recorded:
                return name, value
    return None
