"""Repeats: of whole runs with other seeds, and of single steps of a run.

What a run says of either is in its sealed provenance, so that it can't be claimed afterwards.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

REPEAT, REPEATED_STEPS = "repeat", "repeats"
"""The keys of a run's provenance for the one and the other."""

SHARE = 0.02
"""The share of questions of which a step is repeated by default."""

Times = Annotated[int, Meta(ge=1, le=1000)]
"""How often a run may be repeated: all repeats are recorded in one transaction."""


class Repeat(Struct, frozen=True, kw_only=True):
    """Which of several runs of the same questions a run is.

    of: the first one's id or, within an experiment, its name there. number: from 1; times: how many there are.
    """

    of: str
    number: int
    times: int


class RepeatedSteps(Struct, frozen=True, kw_only=True):
    """Which steps of another run a run carries out again.

    run: the other run's id. kinds: of the steps among which one was drawn for each question.
    share: of the questions that have such steps, as asked for; seed: by which questions and steps were drawn.
    steps: the number of the step that was drawn, by the question's key.
    """

    run: str
    kinds: tuple[str, ...]
    share: float
    seed: int
    steps: dict[str, int] = field(name="from")


def provenance_of(repeat: Repeat | None) -> dict[str, Any]:
    """What a run's provenance says of it."""
    return {} if repeat is None else {REPEAT: msgspec.to_builtins(repeat)}


def read_repeat(provenance: Mapping[str, Any]) -> Repeat | None:
    """Which of several runs it is; None where it is the only one."""
    return msgspec.convert(provenance.get(REPEAT), Repeat | None)


def read_repeated_steps(provenance: Mapping[str, Any]) -> RepeatedSteps | None:
    """The steps that it carries out again; None where it is a run of its own."""
    return msgspec.convert(provenance.get(REPEATED_STEPS), RepeatedSteps | None)
