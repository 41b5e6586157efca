"""Which systems there are, by name and version."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from cotrail.actions import System
from cotrail.errors import UnknownNameError, UnknownVersionError
from cotrail.questions import Question
from cotrail.systems.ircot import ircot
from cotrail.systems.no_retrieval import no_retrieval
from cotrail.systems.one_step import one_step
from cotrail.systems.reading import Shots
from cotrail.systems.settings import IRCoTSettings, NoRetrievalSettings, OneStepSettings


class SystemSpec(Struct, frozen=True, kw_only=True):
    """A system as a run names it.

    version: counts up whenever the same record would lead to other actions; a run pins it.
    settings: the type that a run's settings are read into; retrieves: whether a corpus is needed.
    chains: whether chain-of-thought demonstrations are needed besides the reader's.
    """

    name: str
    version: int
    settings: type
    open: Callable[[Question, Shots, Any], System]
    retrieves: bool = True
    chains: bool = False


SYSTEMS = (
    SystemSpec(name="ircot", version=1, settings=IRCoTSettings, open=ircot, chains=True),
    SystemSpec(name="one-step", version=1, settings=OneStepSettings, open=one_step),
    SystemSpec(name="no-retrieval", version=1, settings=NoRetrievalSettings, open=no_retrieval, retrieves=False),
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
    known = ", ".join(str(system.version) for system in named)
    raise UnknownVersionError(
        f"the run pins {name} version {version}, and this worker has version {known}; "
        "start workers of the release that the run was submitted with, then `cotrail resume RUN`"
    )
