"""Explanation of a digest that doesn't match: the column that was changed, found by trying values of other rows."""

from collections.abc import Callable, Iterable, Mapping

from cotrail.audit.records import Row

RowDigest = Callable[[Row], str]

PATIENCE, GUESS = 2**29, 4096
"""How many characters are hashed to explain findings, seconds' worth, and how many a guess counts as at least."""


class GuessBudget:
    """How much may still be computed to find out what rows held that aren't as they were recorded."""

    def __init__(self) -> None:
        self._left = PATIENCE

    def may(self, row: Row) -> bool:
        """Whether a digest of this row may be computed once more."""
        self._left -= GUESS + sum(len(value) for value in row.values() if value is not None)
        return self._left > 0


def changed_column(
    row: Row, recorded: str, digest: RowDigest, values: Mapping[str, Iterable[str | None]], guesses: GuessBudget
) -> tuple[str, str | None] | None:
    """The column, and the value that it had, with which a row has the digest that was recorded; None: none of these.

    values: what each column may have held, going by other rows.
    """
    for name, candidates in values.items():
        for value in candidates:
            if value == row[name]:
                continue
            if not guesses.may(row):
                return None
            if digest({**row, name: value}) == recorded:
                return name, value
    return None
