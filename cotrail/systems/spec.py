"""The record by which a run, its workers and the experiment tables know a system."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from cotrail.common.nearest import unknown
from cotrail.common.toml_files import read_toml
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.generation import Capability
from cotrail.core.ports.retriever import Source
from cotrail.core.ports.role import EngineRole
from cotrail.core.questions import Question
from cotrail.core.system import System
from cotrail.errors import UnknownNameError, UnknownVersionError
from cotrail.systems.parts.rules import Released, Rules, StepBound


class Needs(Struct, frozen=True, kw_only=True):
    """Requirements of a run, which its settings decide.

    forms: the forms in which the run's demonstrations are shown, other than titles.
    brought: demonstrations of the system's own, which also belong to the run's.
    words: those of the system's prompts by name, in whose place a run may bring others.
    corpus: whether paragraphs are searched for, or opened by their titles; knowledge: the other sources that are asked.
    evidence: whether the paragraphs that a dataset names as evidence are used; the corpus holds them then.
    engines: the roles of the engines that it asks apart from the run's own language model; a run names and pins them.
    samples: whether several chains are drawn, which only the profile `deterministic` repeats exactly.
    capabilities: what its actions ask of the run's own language model beyond the continuation of plain text.
    """

    forms: frozenset[AnswerForm] = frozenset()
    brought: Shots = {}
    words: Mapping[str, str] = {}
    corpus: bool = False
    evidence: bool = False
    knowledge: tuple[Source, ...] = ()
    engines: tuple[EngineRole, ...] = ()
    samples: bool = False
    capabilities: frozenset[Capability] = frozenset()


def always(needs: Needs) -> Callable[[Any], Needs]:
    """The same requirements with any settings."""
    return lambda _: needs


def unbounded(question: Question, settings: Any) -> None:
    """No bound: the settings don't say how many steps a question has at most."""


def as_given(settings: Any) -> Any:
    """The settings as they are: they leave nothing open."""
    return settings


class SystemDescription(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of a system; cotrail's own are described in `systems.toml`.

    version: counts up whenever the same record would lead to other actions; a run pins it.
    title: the name in the tables of the paper that compares it. meaning: what it does, in a sentence; the first one of
        its algorithm's docstring unless given.
    paper: where it is described.
    ablations: the settings of each of its ablations, by dotted path, by what the paper calls it.
    authors_words: the names of the system's prompts by their keys in the JSON file that its authors published.
    """

    version: int
    title: str
    paper: str = ""
    meaning: str = ""
    ablations: Mapping[str, Mapping[str, Any]] = {}
    authors_words: Mapping[str, str] = {}


class SystemSpec(SystemDescription, frozen=True, kw_only=True):
    """A system: its algorithm, its settings, and what the code around it asks of it.

    settings: the type that a run's settings are read into; all of its fields have defaults.
    open: begins the algorithm on a question; needs: the requirements of a run with these settings.
    released: the settings of the authors' released code, where it departs from the paper; none unless given.
    details: the type of `Answer.details`; None if an answer is only text, sentences and paragraphs.
    counts: the experiment's grid that the retrieval count K is chosen from (IRCoT, section 4.1); None if K is not
        chosen. `one-step` is for all paragraphs at once, `interleaved` for those of each step.
    readerless: whether it can end without a reader, by its paragraphs or by what its chains state; a run of any other
        system with the reader `none` is refused.
    states_answer: whether its chains state an answer, so that it does without a reader (IRCoT, appendix F).
    judges: whether it grades the answers of other runs, whose questions then have them (`Question.judged`); only
        `cotrail judge` submits its runs, and metrics of answers don't score them.
    step_bounds: the steps that a question has at most with these settings; None where they set no bound.
    spelled_out: settings with everything in them that a run pins; InputError where they can't be followed.
    source: the digest of its text where it is an extension, which a run pins; empty for cotrail's own.
    """

    name: str
    settings: type[Struct]
    open: Callable[[Question, Shots, Any], System]
    needs: Callable[[Any], Needs]
    released: Released | Mapping[str, Any] = {}
    details: type[Struct] | None = None
    counts: Literal["one-step", "interleaved"] | None = None
    readerless: bool = False
    states_answer: bool = False
    judges: bool = False
    step_bounds: Callable[[Question, Any], tuple[StepBound, ...] | None] = unbounded
    spelled_out: Callable[[Any], Any] = as_given
    source: str = ""

    def rule_settings(self, rules: Rules, *, instructed: bool) -> dict[str, Any]:
        """The settings by which this system follows the rules, where they differ from its defaults."""
        if rules == "paper":
            return {}
        return dict(self.released) if isinstance(self.released, Mapping) else self.released(instructed=instructed)

    def answers_with(self, settings: Mapping[str, Any]) -> bool:
        """Whether a run with these settings has answers: without a reader and stated ones, all it has is paragraphs."""
        return self.states_answer or settings.get("reading", {}).get("reader") != "none"

    def details_in(self, recorded: Any) -> Struct | None:
        """The details of a recorded answer, which the store keeps as JSON.

        None where it has none, and where they have another form than here: extensions may change theirs at will.
        """
        try:
            return None if self.details is None else msgspec.convert(recorded, self.details | None)
        except msgspec.ValidationError:
            return None


DESCRIBED = msgspec.convert(read_toml(Path(__file__).with_name("systems.toml")), dict[str, SystemDescription])


def description(name: str) -> dict[str, Any]:
    """What `systems.toml` says of the system of that name, and the name; KeyError where it says nothing."""
    return {"name": name, **asdict(DESCRIBED[name])}


def find_spec(systems: Iterable[SystemSpec], name: str, version: int | None = None) -> SystemSpec:
    """The system of that name among these, in that version or else its newest.

    Raises UnknownNameError, or UnknownVersionError where only the version is missing.
    """
    specs = tuple(systems)
    versions = {system.version: system for system in specs if system.name == name}
    if not versions and "@" in name:
        raise (UnknownNameError if version is None else UnknownVersionError)(
            f"the system {name} is of a file that isn't kept here: submit it from its file again, or copy the folder "
            f"{name.rpartition('@')[2]} into `systems` of this machine's COTRAIL_HOME, then `cotrail resume RUN`"
        )
    if not versions:
        raise UnknownNameError(unknown("system", name, sorted({system.name for system in specs})))
    if version is None:
        return versions[max(versions)]
    if version in versions:
        return versions[version]
    had = " and ".join(map(str, sorted(versions)))
    raise UnknownVersionError(
        f"the run pins {name} version {version}, and this worker has version {had}; "
        "start workers of the release that the run was submitted with, then `cotrail resume RUN`"
    )
