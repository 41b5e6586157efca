"""What a comparison of runs on the same questions comes to."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from itertools import product
from math import inf
from statistics import fmean
from typing import Literal, get_args

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.common.humanize import largest_first
from cotrail.evaluation.comparison.differences import Difference, differences_of
from cotrail.evaluation.comparison.recommendation import Outcomes, outcomes, pareto_front
from cotrail.evaluation.experiments.costs import QuestionCost, Work
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval
from cotrail.evaluation.metrics.metric import MetricFacts
from cotrail.models.queries.runs import RunRecord
from cotrail.services.results.compared_questions import ComparedProgress, DifferingQuestion, SharedQuestions
from cotrail.services.runs.scores import question_costs, run_cost


class MetricColumn(Struct, frozen=True, kw_only=True):
    """A metric of a run, or what a judge says of it; values: of each question by its id, None where it has none."""

    metric: MetricFacts
    values: Mapping[str, float | None]


MetricColumns = Mapping[str, MetricColumn]
"""The columns of a run by the names of the metrics."""


def paired(first: MetricColumns, second: MetricColumns, metric: str, keys: Collection[str]) -> dict[str, float]:
    """The first run's value less the second's, by question, where both have one; in the order of the questions."""
    return {key: one - other for key, (one, other) in paired_scores(first, second, metric, keys).items()}


# The matrix of wins and losses of two runs: which questions both answered right, one alone, or neither.

Outcome = Literal["both", "first", "second", "neither", "differ"]
"""Whose answer is right: both runs', the first one's alone, the second one's alone, neither; `differ`: the scores do.

An answer is right that has the best possible score."""

_CELLS: Mapping[tuple[bool, bool], Outcome] = {
    (True, True): "both",
    (True, False): "first",
    (False, True): "second",
    (False, False): "neither",
}
"""The outcomes by whether the first run is right, and whether the second one is."""


def paired_scores(
    first: MetricColumns, second: MetricColumns, metric: str, keys: Collection[str]
) -> dict[str, tuple[float, float]]:
    """The scores of both runs by question, where both have one; in the order of the questions."""
    ours, theirs = first[metric].values, second[metric].values
    pairs = ((key, ours.get(key), theirs.get(key)) for key in keys)
    return {key: (one, other) for key, one, other in pairs if one is not None and other is not None}


def by_outcome(scores: Mapping[str, tuple[float, float]], best: float) -> dict[Outcome, list[str]]:
    """The ids of the questions of each outcome, in their order; best: the best possible score."""
    found: dict[Outcome, list[str]] = {outcome: [] for outcome in get_args(Outcome)}
    for key, (one, other) in scores.items():
        found[_CELLS[one >= best, other >= best]].append(key)
    ties = set(outcomes({key: one - other for key, (one, other) in scores.items()}).ties)
    found["differ"] += (key for key in scores if key not in ties)
    return found


def counts_of(found: Mapping[Outcome, Sequence[str]]) -> dict[Outcome, int]:
    """How many questions there are of each outcome."""
    return {outcome: len(keys) for outcome, keys in found.items()}


# Costs of compared runs, and which of them no other beats at its cost.

Measure = Literal["dollars", "tokens", "seconds"]
"""By what runs are compared for their cost."""


class RunCosts(Struct, frozen=True, kw_only=True):
    """What the steps of a run took, those that it adopted from another run too, or of a compared question on average.

    Numbers of a run are whole, and means aren't. calls: of models; tokens: those read and written; seconds: of all
    steps, one after the other.
    dollars: None where a model's price isn't known or none has one, or where steps were adopted, which cost nothing.
    """

    calls: int | float
    searches: int | float
    prompt_tokens: int | float
    generated_tokens: int | float
    seconds: float
    dollars: float | None

    @property
    def tokens(self) -> float:
        """All tokens."""
        return self.prompt_tokens + self.generated_tokens


class CostFront(Struct, frozen=True, kw_only=True):
    """Quality against cost; front: the runs than which none is better at their cost, the cheapest first.

    points: the cost of a question and the quality, by run.
    """

    measure: Measure
    points: Mapping[str, tuple[float, float]]
    front: tuple[str, ...]


def cost_front(costs: Mapping[str, RunCosts | None], qualities: Mapping[str, float | None]) -> CostFront | None:
    """The front of runs by the cost of a question and the quality; None without two runs that have both.

    The cost is money where all have prices, otherwise tokens where all have some, and otherwise seconds.
    """
    known = {run: (cost, qualities[run]) for run, cost in costs.items() if cost and qualities[run] is not None}
    if len(known) < 2:
        return None
    measure: Measure = "seconds"
    if all(cost.dollars is not None for cost, _ in known.values()):
        measure = "dollars"
    elif all(cost.tokens for cost, _ in known.values()):
        measure = "tokens"
    points = {run: (float(getattr(cost, measure)), float(quality or 0)) for run, (cost, quality) in known.items()}
    return CostFront(measure=measure, points=points, front=pareto_front(points))


CostsByQuestion = Mapping[str, RunCosts]
"""What a system asked for by question; of one with repeats, the mean over these."""


def read_costs(connection: Connection, records: Sequence[RunRecord]) -> RunCosts:
    """The costs of a run so far, or of all its repeats together."""
    costs = [run_cost(connection, record.id) for record in records]
    known = all(cost.spent.dollars is not None and not cost.spent.unpriced and not cost.adopted.steps for cost in costs)
    dollars = sum((cost.spent.dollars or Decimal(0) for cost in costs), Decimal(0))
    return _costs(sum((cost.asked for cost in costs), Work()), float(dollars) if known else None)


def read_question_costs(connection: Connection, records: Sequence[RunRecord], keys: Collection[str]) -> CostsByQuestion:
    """What each of these questions cost."""
    runs = [question_costs(connection, record.id) for record in records]
    costs = ((key, [run.get(key, QuestionCost()) for run in runs]) for key in keys)
    return {key: mean_costs([_costs(each.work, each.dollars) for each in found]) for key, found in costs}


def mean_costs(costs: Sequence[RunCosts]) -> RunCosts:
    """The mean of at least one."""
    dollars = [each.dollars for each in costs if each.dollars is not None]
    others = ("calls", "searches", "prompt_tokens", "generated_tokens", "seconds")
    means = {name: fmean(getattr(each, name) for each in costs) for name in others}
    return RunCosts(**means, dollars=fmean(dollars) if len(dollars) == len(costs) else None)


def cost_intervals(costs: CostsByQuestion) -> dict[Measure, ConfidenceInterval | None]:
    """The 95 % intervals of what a question costs, of Student's t, as costs have no bound."""
    dollars = [each.dollars for each in costs.values() if each.dollars is not None]
    return {
        "dollars": confidence_interval(dollars, inf) if len(dollars) == len(costs) else None,
        "tokens": confidence_interval([each.tokens for each in costs.values()], inf),
        "seconds": confidence_interval([each.seconds for each in costs.values()], inf),
    }


def _costs(work: Work, dollars: float | None) -> RunCosts:
    return RunCosts(
        calls=work.model_calls,
        searches=work.searches,
        prompt_tokens=work.prompt_tokens,
        generated_tokens=work.generated_tokens,
        seconds=work.seconds,
        dollars=dollars,
    )


# Differences between compared runs by kind of question: an exploration, which no test's promise covers.

MOST_KINDS = 20
"""The kinds of a sort that are compared: those of most questions."""


class KindDifference(Struct, frozen=True, kw_only=True):
    """The difference between two runs on the questions of a kind.

    sort: what the kinds are, e.g. `level`. difference: corrected for the kinds of the sort, for this pair alone.
    """

    sort: str
    kind: str
    first: str
    second: str
    difference: Difference


def kind_differences(
    columns: Mapping[str, MetricColumns], pairs: Sequence[tuple[str, str]], metric: MetricFacts, shared: SharedQuestions
) -> tuple[KindDifference, ...]:
    """The differences of these pairs of runs by a metric, for each sort of which the questions have several kinds."""
    found: list[KindDifference] = []
    for (sort, kinds), (first, second) in product(_kinds(shared).items(), pairs):
        family = [list(paired(columns[first], columns[second], metric.name, keys).values()) for keys in kinds.values()]
        differences = differences_of(family, metric.span, is_fixed=shared.are_fixed)
        for kind, difference in zip(kinds, differences, strict=True):
            found.append(KindDifference(sort=sort, kind=kind, first=first, second=second, difference=difference))
    return tuple(found)


def _kinds(shared: SharedQuestions) -> dict[str, dict[str, list[str]]]:
    """The questions of each kind by sort, the largest kinds first; sorts of one kind only are left out."""
    sorts: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for key, question in shared.compared.items():
        for sort, kind in question.kinds.items():
            sorts[sort][kind].append(key)
    most = {sort: largest_first(kinds)[:MOST_KINDS] for sort, kinds in sorts.items() if len(kinds) > 1}
    return {sort: {kind: sorts[sort][kind] for kind in kinds} for sort, kinds in most.items()}


class RunScore(Struct, frozen=True, kw_only=True):
    """The mean of a metric over the compared questions that have it, with its 95 % interval.

    interval: holds at every stop where the number of questions wasn't fixed; None of numbers of things then.
    """

    mean: float | None
    interval: ConfidenceInterval | None


class ComparedRun(Struct, frozen=True, kw_only=True):
    """A run; name: its own where it has one that no other compared run has, otherwise its id.

    repeats: ids of all runs that are one system, this one the first of them; empty where it is alone. Scores are then
        those of each question over all of them, and answers and traces those of the first.
    costs: of the whole run so far, of all repeats; costs_per_question: of one of the compared questions on average,
        None without any; cost_intervals: the 95 % intervals of its dollars, tokens and seconds.
    unplanned: what of this comparison its sealed plan doesn't have; None where that plan names no comparison.
    """

    id: str
    name: str
    system: str
    model: str
    dataset: str
    standing: ComparedProgress
    scores: Mapping[str, RunScore]
    costs: RunCosts
    costs_per_question: RunCosts | None
    cost_intervals: Mapping[Measure, ConfidenceInterval | None]
    unplanned: tuple[str, ...] | None
    repeats: tuple[str, ...] = ()


class ComparedPair(Struct, frozen=True, kw_only=True):
    """Two runs, by id: all differences are those of the first from the second.

    plans: ids of those of them whose plans have this comparison; the difference by the planned metric is held against
        what these plans demand (`Difference.demands`).
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
    plans: tuple[str, ...] = ()


class Comparison(Struct, frozen=True, kw_only=True):
    """Runs compared on the questions that all of them have.

    is_fixed: whether the number of questions was fixed beforehand; otherwise the intervals hold at every stop.
    questions: how many are compared; left_out: how many shared ones aren't yet.
    metrics: the first is the primary one. deciding: all scores that every run has, each of which may be.
    kinds: differences of it by kind of question, an exploration.
    """

    is_fixed: bool
    questions: int
    left_out: int
    metrics: tuple[MetricFacts, ...]
    deciding: tuple[MetricFacts, ...]
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
