"""Waves of a run that is asked in batches: how many batches have to answer one after another."""

from collections.abc import Mapping
from typing import Any

import msgspec

from cotrail.common.humanize import count
from cotrail.core.actions.registry import has_prompt
from cotrail.core.questions import Question
from cotrail.systems.registry import find_system


def most_waves(system: str, version: int, settings: Mapping[str, Any]) -> int | None:
    """How many waves a run has at most, by the limits of its system; None where it has none.

    Raises UnknownNameError, UnknownVersionError.
    """
    spec = find_system(system, version)
    bounds = spec.most(Question(id="", text=""), msgspec.convert(settings, spec.settings))
    if bounds is None:
        return None
    prompted = (each for each in bounds if has_prompt(each.kind))
    return sum(each.times if each.in_turn is None else each.in_turn for each in prompted)


def waves_in_words(system: str, version: int, settings: Mapping[str, Any]) -> str:
    """What a run in batches takes."""
    most = most_waves(system, version, settings)
    waves = "batches one after another" if most is None else f"at most {count(most, 'wave')} of batches"
    return f"It is asked in {waves}: each mostly takes less than an hour, and 24 hours at worst."
