"""What a comparison of runs on the same questions comes to."""

from collections.abc import Mapping

from msgspec import Struct

from cotrail.evaluation.comparison.differences import Difference
from cotrail.evaluation.comparison.outcomes import Outcomes
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval
from cotrail.evaluation.metrics.metric import MetricFacts
from cotrail.services.views.compared_costs import CostFront, RunCosts
from cotrail.services.views.comparing_kinds import KindDifference
from cotrail.services.views.comparing_questions import Standing
from cotrail.services.views.comparing_traces import DifferingQuestion
from cotrail.services.views.outcome_matrix import Outcome


class RunScore(Struct, frozen=True, kw_only=True):
    """The mean of a metric over the compared questions that have it, with its 95 % interval."""

    mean: float | None
    interval: ConfidenceInterval | None


class ComparedRun(Struct, frozen=True, kw_only=True):
    """A run; name: its own where it has one that no other compared run has, otherwise its id.

    costs: of the whole run so far; costs_per_question: those divided by its ended questions.
    unplanned: what of this comparison its sealed plan doesn't have; None where that plan names no comparison.
    """

    id: str
    name: str
    system: str
    model: str
    dataset: str
    standing: Standing
    scores: Mapping[str, RunScore]
    costs: RunCosts
    costs_per_question: RunCosts | None
    unplanned: tuple[str, ...] | None


class ComparedPair(Struct, frozen=True, kw_only=True):
    """Two runs, by id: all differences are those of the first from the second.

    differences: by metric; outcomes, counts: by the primary one, the latter of the matrix of wins and losses.
    shown: questions whose outcome differs, with the step at which the traces part: up to `MOST_TRACED` wins, then as
    many losses, those with the largest differences first.
    """

    first: str
    second: str
    differences: Mapping[str, Difference]
    outcomes: Outcomes
    counts: Mapping[Outcome, int]
    shown: tuple[DifferingQuestion, ...]


class Comparison(Struct, frozen=True, kw_only=True):
    """Runs compared on the questions that all of them have.

    is_fixed: whether the number of questions was fixed beforehand; otherwise the intervals hold at every stop.
    questions: how many are compared; left_out: how many shared ones aren't yet.
    metrics: the first is the primary one. kinds: differences of it by kind of question, an exploration.
    """

    is_fixed: bool
    questions: int
    left_out: int
    metrics: tuple[MetricFacts, ...]
    runs: tuple[ComparedRun, ...]
    pairs: tuple[ComparedPair, ...]
    kinds: tuple[KindDifference, ...]
    front: CostFront | None

    @property
    def primary(self) -> MetricFacts:
        """The metric that decides."""
        return self.metrics[0]

    def run(self, run_id: str) -> ComparedRun:
        """The run of that id."""
        return next(each for each in self.runs if each.id == run_id)
