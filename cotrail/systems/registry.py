"""The systems there are, in the order of their papers' tables: a line a system."""

from cotrail.errors import UnknownNameError, UnknownVersionError
from cotrail.systems import (
    auto_cot,
    chain_of_thought,
    direct,
    direct_retrieval,
    few_shot,
    ircot,
    least_to_most,
    no_retrieval,
    one_step,
    plan_and_solve,
    recite,
    self_consistency,
    vote,
    zero_shot,
    zero_shot_chain_of_thought,
)
from cotrail.systems.rethinking import system as rethinking
from cotrail.systems.searchain import system as searchain
from cotrail.systems.spec import SystemSpec, find_spec

SYSTEMS: list[SystemSpec] = [
    no_retrieval.SPEC,
    *one_step.SPECS,
    *ircot.SPECS,
    *zero_shot.SPECS,
    *few_shot.SPECS,
    *chain_of_thought.SPECS,
    *self_consistency.SPECS,
    *rethinking.SPECS,
    *searchain.SPECS,
    direct.SPEC,
    zero_shot_chain_of_thought.SPEC,
    auto_cot.SPEC,
    recite.SPEC,
    least_to_most.SPEC,
    direct_retrieval.SPEC,
    plan_and_solve.SPEC,
]
SYSTEMS.append(vote.over(SYSTEMS))
"""Every version of every system, since recorded runs replay in the version that they pin."""


def find_system(name: str, version: int | None = None) -> SystemSpec:
    """The system of that name, in that version or else its newest; raises what `find_spec` does."""
    return find_spec(SYSTEMS, name, version)


def recorded_system(name: str, version: int) -> SystemSpec | None:
    """The system that a run records; None where this release doesn't have it any more."""
    try:
        return find_system(name, version)
    except (UnknownNameError, UnknownVersionError):
        return None
