"""The systems there are, in the order of `systems.toml`, which is that of their papers' tables."""

from importlib import import_module

from cotrail.errors import UnknownNameError, UnknownVersionError
from cotrail.systems import embedding, imported, own, vote
from cotrail.systems.spec import DESCRIBED, SystemSpec, find_spec

MODULES = (
    *("ircot", "selected_chain"),
    *("baselines", "rethinking.system", "searchain.system"),
    *("without_retrieval", "decomposition"),
    *("one_round", "react", "toolformer", "dsp", "verify_and_edit"),
    *("written_queries", "corag", "probtree", "tag_agents.system"),
    *("tool_agents.tool_agent", "tool_agents.trained_agents"),
    "judge.system",
)
"""The modules of systems in `cotrail.systems`: each has a `SPEC`, or `SPECS`, several systems or versions."""

_IMPORTED = [vars(import_module(f"cotrail.systems.{module}")) for module in MODULES]

SYSTEMS: list[SystemSpec] = [spec for each in _IMPORTED for spec in each.get("SPECS") or (each["SPEC"],)]
SYSTEMS.sort(key=lambda spec: [*DESCRIBED].index(spec.name))
SYSTEMS.append(vote.over([spec for spec in SYSTEMS if not spec.judges]))
"""Every version of every system, since recorded runs replay in the version that they pin."""

_UNLISTED = {spec.name: spec for spec in (imported.SPEC, embedding.SPEC)}
"""Those of runs that nobody submits."""


def find_system(name: str, version: int | None = None) -> SystemSpec:
    """The system of that name, in that version or else its newest; raises what `find_spec` does.

    One of a file, `NAME@DIGEST`, is read from where its text is kept.
    """
    if own.is_file(name):
        raise UnknownNameError(
            f"{name} is a file, which `cotrail submit` and `cotrail ask` take as --system; the run's system is then "
            "NAME@DIGEST, by which all others name it"
        )
    if "@" in name and not any(each.name == name for each in SYSTEMS):
        SYSTEMS.extend(own.found(name))
    return find_spec([_UNLISTED[name]] if name in _UNLISTED else SYSTEMS, name, version)


def recorded_system(name: str, version: int) -> SystemSpec | None:
    """The system that a run records; None where this release doesn't have it any more."""
    try:
        return find_system(name, version)
    except (UnknownNameError, UnknownVersionError):
        return None
