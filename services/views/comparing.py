"""Comparison of runs on the same questions: which is better, by how much, how sure that is, on which questions, why."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from statistics import fmean

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.errors import InputError
from cotrail.evaluation.comparison.differences import Difference, anytime_differences, fixed_differences
from cotrail.evaluation.comparison.outcomes import outcomes
from cotrail.evaluation.metrics.confidence_intervals import confidence_interval
from cotrail.evaluation.metrics.metric import MetricFacts
from cotrail.models.queries.runs import RunRecord, resolve_run
from cotrail.services.views.compared_costs import CostFront, cost_front
from cotrail.services.views.compared_values import MetricColumns, paired
from cotrail.services.views.comparing_costs import read_costs
from cotrail.services.views.comparing_kinds import kind_differences
from cotrail.services.views.comparing_metrics import check_names, compared_metrics, metric_columns
from cotrail.services.views.comparing_questions import SharedQuestions, compared_records, shared_questions
from cotrail.services.views.comparing_traces import Traces
from cotrail.services.views.comparison import ComparedPair, ComparedRun, Comparison, RunScore
from cotrail.services.views.distinct_names import distinct_names
from cotrail.services.views.outcome_matrix import by_outcome, counts_of, paired_scores
from cotrail.services.views.plans import unplanned_of

MOST_TRACED = 20
"""The wins of a pair whose traces are compared, and as many of its losses: those with the largest differences."""


class ComparisonRequest(Struct, frozen=True, kw_only=True):
    """What to compare.

    runs: ids, their beginnings, names or `latest`. against: one of them, with which alone the others are compared.
    metrics: their names, the primary one first; the main scores that all runs have where none is named.
    """

    runs: tuple[str, ...]
    against: str | None = None
    metrics: tuple[str, ...] = ()


Tell = Callable[[str], None]
"""Takes what is being done, in words."""


def compare(connection: Connection, request: ComparisonRequest, tell: Tell = lambda _: None) -> Comparison:
    """Compare runs as they stand.

    Raises InputError where fewer than two runs are named, or they share no questions or no score.
    """
    check_names(request.metrics)
    records = compared_records(connection, request.runs)
    chosen = _pairs(connection, records, request.against)
    tell("reading the questions")
    shared = shared_questions(connection, records)
    columns = {}
    for number, record in enumerate(records, start=1):
        tell(f"scoring run {number} of {len(records)}")
        columns[record.id] = metric_columns(connection, record)
    metrics = compared_metrics(columns, shared.compared, request.metrics)
    differences = {}
    for metric in metrics:
        tell(f"testing {metric.title}")
        differences[metric.name] = _differences(columns, chosen, metric, shared)
    tell("testing kinds of questions")
    kinds = kind_differences(columns, chosen, metrics[0], shared)
    tell("adding up costs")
    runs = tuple(_runs(connection, records, columns, metrics, shared))
    traces = Traces(connection, {run.id: columns[run.id][metrics[0].name].values for run in runs})
    pairs = []
    for place, (first, second) in enumerate(chosen):
        tell(f"comparing traces of pair {place + 1} of {len(chosen)}")
        of_metrics = {name: of[place] for name, of in differences.items()}
        pairs.append(_pair(first, second, columns, of_metrics, shared, traces, metrics[0]))
    return Comparison(
        is_fixed=shared.are_fixed,
        questions=len(shared.compared),
        left_out=shared.left_out,
        metrics=metrics,
        runs=runs,
        pairs=tuple(pairs),
        kinds=kinds,
        front=_front(runs, metrics[0]),
    )


def _pairs(connection: Connection, records: Sequence[RunRecord], against: str | None) -> list[tuple[str, str]]:
    """The pairs to compare: all of them, or each other run with that one."""
    ids = [record.id for record in records]
    if against is None:
        return list(combinations(ids, 2))
    base = resolve_run(connection, against)
    if base not in ids:
        raise InputError(f"--against {against} is none of the runs that are compared; name it among them too")
    return [(run_id, base) for run_id in ids if run_id != base]


def _differences(
    columns: Mapping[str, MetricColumns],
    chosen: Sequence[tuple[str, str]],
    metric: MetricFacts,
    shared: SharedQuestions,
) -> list[Difference]:
    pairs = (paired(columns[first], columns[second], metric.name, shared.compared) for first, second in chosen)
    family = [list(pair.values()) for pair in pairs]
    return fixed_differences(family, metric.span) if shared.are_fixed else anytime_differences(family, metric.span)


def _pair(
    first: str,
    second: str,
    columns: Mapping[str, MetricColumns],
    differences: Mapping[str, Difference],
    shared: SharedQuestions,
    traces: Traces,
    primary: MetricFacts,
) -> ComparedPair:
    scores = paired_scores(columns[first], columns[second], primary.name, shared.compared)
    by_question = {key: one - other for key, (one, other) in scores.items()}
    decided = outcomes(by_question)
    shown = [
        traces.differing(first, second, shared.compared[key])
        for keys in (decided.wins, decided.losses)
        for key in islice(sorted(keys, key=lambda key: -abs(by_question[key])), MOST_TRACED)
    ]
    return ComparedPair(
        first=first,
        second=second,
        differences=differences,
        outcomes=decided,
        counts=counts_of(by_outcome(scores, primary.highest)),
        shown=tuple(shown),
    )


def _runs(
    connection: Connection,
    records: Sequence[RunRecord],
    columns: Mapping[str, MetricColumns],
    metrics: Sequence[MetricFacts],
    shared: SharedQuestions,
) -> Iterator[ComparedRun]:
    names = distinct_names(connection, [record.id for record in records])
    for record in records:
        costs, standing = read_costs(connection, record.id), shared.standings[record.id]
        values = {each.name: _known(columns[record.id][each.name].values, shared) for each in metrics}
        yield ComparedRun(
            id=record.id,
            name=names[record.id],
            system=record.system,
            model=record.model_name,
            dataset=record.dataset,
            standing=standing,
            scores={each.name: _score(each, values[each.name]) for each in metrics},
            costs=costs,
            costs_per_question=costs.per(standing.ended),
            unplanned=unplanned_of(
                connection, record, [each.name for each in metrics], [run for run in names if run != record.id]
            ),
        )


def _known(values: Mapping[str, float | None], shared: SharedQuestions) -> list[float]:
    return [value for key in shared.compared if (value := values.get(key)) is not None]


def _score(metric: MetricFacts, values: Sequence[float]) -> RunScore:
    return RunScore(
        mean=fmean(values) if values else None, interval=confidence_interval(values, metric.highest, metric.lowest)
    )


def _front(runs: Sequence[ComparedRun], primary: MetricFacts) -> CostFront | None:
    costs = {run.id: run.costs_per_question for run in runs}
    return cost_front(costs, {run.id: run.scores[primary.name].mean for run in runs})
