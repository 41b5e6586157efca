"""Results of a comparison's runs, as its tables need them."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from cotrail.evaluation.experiments.compare.experiment import ComparedCell
from cotrail.evaluation.experiments.costs import Cost
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval
from cotrail.evaluation.metrics.scores import QuestionScores
from cotrail.systems.parts.short_settings import short_path


class ComparedRun(Struct, frozen=True, kw_only=True):
    """The results of a run.

    settings: of its system, as JSON. dataset: the format of its questions, by which published figures are found.
    corpus: None if nothing is retrieved. answered: the scores of the questions that have an answer, by their keys.
    asked: the scores of all questions, by their keys.
    scores: the mean of each metric, None where no question has it; intervals: of these means.
    ends: the number of questions by what ended them.
    """

    cell: ComparedCell
    system: str
    settings: Mapping[str, Any]
    dataset: str
    corpus: str | None
    questions: int
    answered: Mapping[str, QuestionScores]
    scores: Mapping[str, float | None]
    cost: Cost
    ends: Mapping[str, int] = {}
    asked: Mapping[str, QuestionScores] = {}
    intervals: Mapping[str, ConfidenceInterval | None] = {}

    @property
    def is_answered(self) -> bool:
        """Return whether every question has an answer."""
        return len(self.answered) == self.questions

    @property
    def is_over(self) -> bool:
        """Return whether every question has ended, by an answer or otherwise, and none was cancelled."""
        return sum(self.ends.values()) == self.questions

    @property
    def tokens(self) -> float:
        """The tokens of a question on average, read and written."""
        return (self.cost.asked.prompt_tokens + self.cost.asked.generated_tokens) / self.questions

    @property
    def dollars(self) -> float | None:
        """What a question cost on average; None where a price isn't known, and where other runs paid for steps."""
        spent = self.cost.spent
        unknown = spent.dollars is None or spent.unpriced or self.cost.adopted.steps
        return None if spent.dollars is None or unknown else float(spent.dollars) / self.questions

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
