"""A comparison's runs: which are selected, and their results as its tables need them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common import nearest
from cotrail.core.ports.roles import ROLES
from cotrail.errors import InputError
from cotrail.evaluation.comparison.differences import Reach
from cotrail.evaluation.experiments.compare.experiment import ComparedCell, CompareExperiment
from cotrail.evaluation.experiments.compare.requests import request
from cotrail.evaluation.experiments.costs import Cost, QuestionCost, Work
from cotrail.evaluation.experiments.paper import RunKeys, named_corpora
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.systems.parts.prompting import short_path
from cotrail.systems.spec import Needs


class ComparedRun(Struct, frozen=True, kw_only=True):
    """The results of a run.

    settings: of its system, as JSON. dataset: the format of its questions, by which published figures are found.
    corpus: None if nothing is retrieved. answered: the scores of the questions that have an answer, by their keys.
    reach: how far it is with all its questions. asked: the scores of those that weren't cancelled or left over by a
        rule or a budget, by their keys; costs: of these, by their keys.
    scores: the mean of each metric over these, None where none has it; intervals: of these means, which hold at every
        stop where questions were left over.
    ends: the number of questions by what ended them.
    """

    cell: ComparedCell
    system: str
    settings: Mapping[str, Any]
    dataset: str
    corpus: str | None
    reach: Reach
    answered: Mapping[str, QuestionScores]
    scores: Mapping[str, float | None]
    cost: Cost
    ends: Mapping[str, int] = {}
    asked: Mapping[str, QuestionScores] = {}
    costs: Mapping[str, QuestionCost] = {}
    intervals: Mapping[str, ConfidenceInterval | None] = {}

    @property
    def questions(self) -> int:
        """The number of its questions."""
        return len(self.reach.ended)

    @property
    def is_answered(self) -> bool:
        """Return whether every question has an answer."""
        return len(self.answered) == self.questions

    @property
    def unasked(self) -> int:
        """The number of questions that were cancelled or left over by a rule or a budget."""
        return self.questions - len(self.asked)

    @property
    def was_cut(self) -> bool:
        """Return whether a rule, a budget or a person decides how many of its questions are asked."""
        return bool(self.unasked or self.reach.until)

    @property
    def is_over(self) -> bool:
        """Return whether every question that was asked has ended, by an answer or otherwise; one at least has."""
        return 0 < sum(self.reach.ended.values()) == len(self.asked)

    @property
    def asked_cost(self) -> Cost:
        """What the questions asked for that the scores are means of."""
        return replace(self.cost, asked=sum((each.work for each in self.costs.values()), Work()))

    @property
    def retrieval_count(self) -> int | None:
        """The number of paragraphs a search (k); None where nothing is retrieved, or the system has no such setting."""
        path = short_path("retrieval_count", self.settings)
        if path is None or self.corpus is None:
            return None
        value: Any = self.settings
        for key in path:
            value = value[key]
        return int(value)


# Which runs of a comparison there are, by what they need, and whether all that its file names is used.

Named = tuple[str, str]
"""A key, and what it names."""


def selected(experiment: CompareExperiment, needs: Mapping[ComparedCell, Needs]) -> Sequence[ComparedCell]:
    """The runs that there are; a system that doesn't search runs once, and not with each retriever.

    needs: of every run that there may be. Raises InputError for what is named and no run has a use for.
    """
    kept = [cell for cell, needed in needs.items() if _is_run(experiment, cell, needed)]
    _check_settings(experiment)
    if unused := sorted(experiment.retrievers.keys() - {cell.retriever for cell in kept}):
        raise InputError(
            f"no run searches by the retriever {unused[0]}; leave it out, or compare a system that searches"
        )
    named = dict.fromkeys(each for cell in needs for each in _named(request(experiment, cell)))
    used = {each for cell in kept for each in _used(request(experiment, cell), needs[cell])}
    for key, value in named:
        if (key, value) not in used:
            raise InputError(f"no run has a use for `{key}` {value}; leave it out, or compare a system that has")
    return kept


def _is_run(experiment: CompareExperiment, cell: ComparedCell, needs: Needs) -> bool:
    return not experiment.retrievers_of(cell.dataset) or needs.corpus == bool(cell.retriever)


def _check_settings(experiment: CompareExperiment) -> None:
    systems = dict.fromkeys(system.system for system in experiment.compared)
    if unused := sorted(experiment.settings.keys() - systems.keys()):
        raise InputError(f"`settings`: {nearest.unknown('system', unused[0], systems)}")


def _named(keys: RunKeys) -> Iterator[Named]:
    """What a run's request names that only some systems use."""
    yield from (("corpus", name) for name in named_corpora(keys))
    yield from ((key, str(keys[key])) for key in ("demonstrations", "prompt") if keys.get(key))
    engines = {**keys.get("engines", {}), **{role: keys[role] for role in ROLES if keys.get(role)}}
    yield from ((role, str(name)) for role, name in engines.items())


def _used(keys: RunKeys, needs: Needs) -> Iterator[Named]:
    """Those that a run uses; a corpus is also where gold paragraphs are looked up."""
    used = {"corpus": True, "demonstrations": bool(needs.forms), "prompt": bool(needs.words)}
    used |= {role.name: True for role in needs.engines}
    yield from ((key, value) for key, value in _named(keys) if used.get(key))
