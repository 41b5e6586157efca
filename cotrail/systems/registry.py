"""The systems there are, in the order of their papers' tables: a line a system."""

from importlib import import_module

from cotrail.errors import UnknownNameError, UnknownVersionError
from cotrail.systems import own, vote
from cotrail.systems.spec import SystemSpec, find_spec

MODULES = (
    *("one_step", "ircot", "selected_chain"),
    *("baselines", "rethinking.system", "searchain.system"),
    *("direct", "zero_shot_chain_of_thought", "auto_cot", "recite", "least_to_most", "direct_retrieval"),
    *("plan_and_solve", "self_ask", "react.react", "react.back_off", "toolformer", "dsp", "verify_and_edit"),
    *("flare", "iter_retgen", "corag", "probtree.system", "tag_agents.system"),
    *("tool_agents.tool_agent", "tool_agents.recall", "tool_agents.tongyi_deepresearch", "tool_agents.deep_research"),
    "judge.system",
)
"""The modules of systems in `cotrail.systems`; the `SPECS` of each are the versions of its system or systems."""

SYSTEMS: list[SystemSpec] = [spec for module in MODULES for spec in import_module(f"cotrail.systems.{module}").SPECS]
SYSTEMS.append(vote.over([spec for spec in SYSTEMS if not spec.judges]))
"""Every version of every system, since recorded runs replay in the version that they pin."""


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
    return find_spec(SYSTEMS, name, version)


def recorded_system(name: str, version: int) -> SystemSpec | None:
    """The system that a run records; None where this release doesn't have it any more."""
    try:
        return find_system(name, version)
    except (UnknownNameError, UnknownVersionError):
        return None
