"""The results of a comparison's runs, as its tables need them."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.evaluation.comparison.differences import Reach
from cotrail.evaluation.experiments.compare.experiment import ComparedCell
from cotrail.evaluation.experiments.costs import Cost, QuestionCost, Work
from cotrail.evaluation.experiments.recorded import RecordedRun
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.evaluation.metrics.question_scores import mean_scores
from cotrail.evaluation.metrics.stop_rules import interval_of
from cotrail.systems.parts.prompting import short_path


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


def read_run(cell: ComparedCell, run: RecordedRun) -> ComparedRun:
    """The results of a recorded run."""
    questions = tuple(run.questions)
    asked = {each.key: each.scores for each in questions if each.asked}
    reach = Reach(ended={each.key: each.ended for each in questions}, until=run.until)
    means = mean_scores([*asked.values()], interval_of(is_fixed=not (run.until or len(asked) < len(questions))))
    return ComparedRun(
        cell=cell,
        system=run.system,
        settings=msgspec.to_builtins(run.settings),
        dataset=run.dataset,
        corpus=run.corpus,
        reach=reach,
        answered={each.key: each.scores for each in questions if each.answer is not None},
        scores=means.metrics,
        intervals=means.intervals,
        cost=run.cost,
        ends=run.ends,
        costs={each.key: each.cost for each in questions if each.asked},
        asked=asked,
    )
