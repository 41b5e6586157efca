"""Which systems there are, by name and version."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from cotrail.core.questions import Question
from cotrail.core.system import System
from cotrail.errors import UnknownNameError, UnknownVersionError
from cotrail.systems import needs
from cotrail.systems.chain_of_thought import chain_of_thought
from cotrail.systems.few_shot import few_shot
from cotrail.systems.former import (
    BaselineSettings1,
    IRCoTSettings1,
    OneStepSettings1,
    RethinkingSettings1,
    SelfConsistencySettings1,
    ZeroShotSettings1,
)
from cotrail.systems.ircot import ircot
from cotrail.systems.needs import Needs
from cotrail.systems.no_retrieval import no_retrieval
from cotrail.systems.one_step import one_step
from cotrail.systems.parts.reading import Shots
from cotrail.systems.rethinking.settings import (
    BaselineSettings,
    IRCoTSettings,
    NoRetrievalSettings,
    OneStepSettings,
    RethinkingSettings,
    SelfConsistencySettings,
    ZeroShotSettings,
)
from cotrail.systems.rethinking.system import rethinking
from cotrail.systems.self_consistency import self_consistency
from cotrail.systems.zero_shot import zero_shot


class SystemSpec(Struct, frozen=True, kw_only=True):
    """A system as a run names it.

    version: counts up whenever the same record would lead to other actions; a run pins it.
    settings: the type that a run's settings are read into; needs: what a run with these settings needs.
    """

    name: str
    version: int
    settings: type
    open: Callable[[Question, Shots, Any], System]
    needs: Callable[[Any], Needs]


def _versions(
    name: str, opened: Callable[[Question, Shots, Any], System], needs_of: Callable[[Any], Needs], *settings: type
) -> tuple[SystemSpec, ...]:
    """A system whose versions differ by their settings alone, given those of each version from 1 on."""
    return tuple(
        SystemSpec(name=name, version=number, settings=each, open=opened, needs=needs_of)
        for number, each in enumerate(settings, start=1)
    )


SYSTEMS = (
    *_versions("ircot", ircot, needs.of_ircot, IRCoTSettings1, IRCoTSettings),
    *_versions("one-step", one_step, needs.of_one_step, OneStepSettings1, OneStepSettings),
    SystemSpec(
        name="no-retrieval", version=1, settings=NoRetrievalSettings, open=no_retrieval, needs=needs.of_no_retrieval
    ),
    *_versions("rethinking", rethinking, needs.of_rethinking, RethinkingSettings1, RethinkingSettings),
    *_versions(
        "self-consistency",
        self_consistency,
        needs.of_self_consistency,
        SelfConsistencySettings1,
        SelfConsistencySettings,
    ),
    *_versions("chain-of-thought", chain_of_thought, needs.of_chain_of_thought, BaselineSettings1, BaselineSettings),
    *_versions("few-shot", few_shot, needs.of_few_shot, BaselineSettings1, BaselineSettings),
    *_versions("zero-shot", zero_shot, needs.of_zero_shot, ZeroShotSettings1, ZeroShotSettings),
)


def find_system(name: str, version: int | None = None, systems: tuple[SystemSpec, ...] = SYSTEMS) -> SystemSpec:
    """The system of that name, in that version or else its newest.

    Raises UnknownNameError, or UnknownVersionError where only the version isn't there.
    """
    named = [system for system in systems if system.name == name]
    if not named:
        known = ", ".join(sorted({system.name for system in systems}))
        raise UnknownNameError(f"there is no system {name!r}; there are: {known}")
    if version is None:
        return max(named, key=lambda system: system.version)
    for system in named:
        if system.version == version:
            return system
    known = " and ".join(str(system.version) for system in named)
    raise UnknownVersionError(
        f"the run pins {name} version {version}, and this worker has version {known}; "
        "start workers of the release that the run was submitted with, then `cotrail resume RUN`"
    )
