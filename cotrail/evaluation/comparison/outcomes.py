"""Wins, losses and ties: which questions the one system answered better than the other."""

from collections.abc import Mapping

from msgspec import Struct

_EQUAL = 1e-12
"""Scores that differ less are equal but for rounding."""


class Outcomes(Struct, frozen=True, kw_only=True):
    """The ids of the questions on which the first system scores more, less and the same, in their order."""

    wins: tuple[str, ...]
    losses: tuple[str, ...]
    ties: tuple[str, ...]


def outcomes(differences: Mapping[str, float]) -> Outcomes:
    """Sort questions by who scores more; differences: by their ids."""
    return Outcomes(
        wins=tuple(key for key, difference in differences.items() if difference > _EQUAL),
        losses=tuple(key for key, difference in differences.items() if difference < -_EQUAL),
        ties=tuple(key for key, difference in differences.items() if abs(difference) <= _EQUAL),
    )
