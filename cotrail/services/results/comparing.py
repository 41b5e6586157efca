"""Comparison of runs on the same questions: which is better, by how much, how sure that is, on which questions, why."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations, islice
from statistics import fmean
from typing import Annotated

from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.common.nearest import guess
from cotrail.errors import InputError, UnknownNameError
from cotrail.evaluation.comparison.differences import USUAL, Demands, Difference, differences_of
from cotrail.evaluation.comparison.recommendation import outcomes
from cotrail.evaluation.metrics.answer_metrics import METRICS, main_metrics
from cotrail.evaluation.metrics.metric import MetricFacts
from cotrail.evaluation.metrics.question_scores import IntervalOf
from cotrail.evaluation.metrics.stop_rules import interval_of
from cotrail.evaluation.plans import Plan
from cotrail.models.queries.question_summaries import read_scores_by_question, read_summarized
from cotrail.models.queries.runs import RunRecord, resolve_run
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import LOCAL_ONLY, operation
from cotrail.services.results import compared_questions
from cotrail.services.results.comparison import (
    ComparedPair,
    ComparedRun,
    Comparison,
    CostFront,
    MetricColumn,
    MetricColumns,
    RunScore,
    by_outcome,
    cost_front,
    cost_intervals,
    counts_of,
    kind_differences,
    mean_costs,
    paired,
    paired_scores,
    read_costs,
    read_question_costs,
)
from cotrail.services.results.judges import Judge, verdict_scores
from cotrail.services.results.plans import planned_comparison, resolved_plan, unplanned_of
from cotrail.services.results.summarizing import is_current
from cotrail.services.runs.scores import scores_by_question
from cotrail.services.store import reading


def system_columns(connection: Connection, records: Sequence[RunRecord]) -> MetricColumns:
    """The columns of a run, or of its repeats together: what all of them have, as the mean of each question's values.

    So a question is one observation however often it was asked, and what differs between the repeats widens what is
    said of it.
    """
    first, *others = (metric_columns(connection, record) for record in records)
    return {
        name: MetricColumn(metric=column.metric, values=_means([column, *(of[name] for of in others)]))
        for name, column in first.items()
        if all(name in of and of[name].metric == column.metric for of in others)
    }


def _means(columns: Sequence[MetricColumn]) -> Mapping[str, float | None]:
    """The mean of each question's values; None where a repeat has none."""
    if len(columns) == 1:
        return columns[0].values
    found: dict[str, float | None] = {}
    for key in columns[0].values:
        values = [value for each in columns if (value := each.values.get(key)) is not None]
        found[key] = fmean(values) if len(values) == len(columns) else None
    return found


def metric_columns(connection: Connection, record: RunRecord) -> MetricColumns:
    """All metrics of a run's questions as it stands, then what its judges say, by their labels."""
    scored = scores_by_question(connection, record)
    return _columns(connection, record, {key: each.scores for key, each in scored.items()})


def summarized_columns(connection: Connection, record: RunRecord) -> MetricColumns:
    """The same from the summaries of a sealed run, where they are complete: nothing is scored again."""
    row = read_summarized(connection, [record.id]).get(record.id)
    if row is None or not (row["complete"] and is_current(row, record.digest)):
        return metric_columns(connection, record)
    return _columns(connection, record, read_scores_by_question(connection, record.id))


def check_names(names: Sequence[str]) -> None:
    """Raise UnknownNameError where there is no metric of such a name, and it can't be a judge's."""
    for name in names:
        if name not in METRICS and "/" not in name:
            raise UnknownNameError(
                f"there is no metric {name!r}{guess(name, METRICS)}; the metrics are {', '.join(METRICS)}, and the "
                "judges that `cotrail verdicts` names"
            )


def compared_metrics(
    columns: Mapping[str, MetricColumns], keys: Collection[str], names: Sequence[str] = (), planned: str = ""
) -> tuple[MetricFacts, ...]:
    """What to compare by, the primary one first: what is named, or else the main scores and judges that all runs have.

    columns: by run. planned: the metric that a plan compares by, which stands first where none is named.
    Raises UnknownNameError where no run has what is named, InputError where one of them hasn't, or all have nothing in
    common.
    """
    found = shared_metrics(columns, keys)
    for name in names:
        if name not in found:
            _refuse(columns, name)
    if names:
        return tuple(found[name] for name in dict.fromkeys(names))
    main = [metric.name for metric in main_metrics() if not metric.is_count]
    usual_names = dict.fromkeys((planned, *main, *(name for name in found if name not in METRICS)))
    usual = tuple(found[name] for name in usual_names if name in found)
    if not usual:
        raise InputError(
            "the runs have no score in common: their questions publish no answers, or none has ended in every run; "
            "wait for them, or name what to compare by with --metric"
        )
    return usual


def shared_metrics(columns: Mapping[str, MetricColumns], keys: Collection[str]) -> dict[str, MetricFacts]:
    """What every run has of any of these questions, by its name; judges with different rubrics aren't the same."""
    first, *others = columns.values()

    def has(of: MetricColumns, metric: MetricFacts) -> bool:
        column = of.get(metric.name)
        return (
            column is not None and column.metric == metric and any(column.values.get(key) is not None for key in keys)
        )

    metrics = (column.metric for column in first.values())
    return {each.name: each for each in metrics if all(has(of, each) for of in (first, *others))}


def _refuse(columns: Mapping[str, MetricColumns], name: str) -> None:
    """Raise the error for a name that not all runs have values of."""
    if name in METRICS:
        without = [run for run, of in columns.items() if all(value is None for value in of[name].values.values())]
        raise InputError(f"no question of {', '.join(without) or 'all runs'} has {name}; leave it out")
    judges = dict.fromkeys(each for of in columns.values() for each in of if each not in METRICS)
    if name not in judges:
        raise UnknownNameError(f"none of the runs has a judge {name!r}{guess(name, judges)}; `cotrail judge` adds one")
    raise InputError(f"not all of the runs have the judge {name} by the same rubric; `cotrail judge` adds it")


def _columns(
    connection: Connection, record: RunRecord, scores: Mapping[str, Mapping[str, float | None]]
) -> MetricColumns:
    columns = {
        name: MetricColumn(metric=metric.facts, values={key: each.get(name) for key, each in scores.items()})
        for name, metric in METRICS.items()
    }
    return columns | {column.metric.name: column for column in _judged(connection, record)}


def _judged(connection: Connection, record: RunRecord) -> Iterator[MetricColumn]:
    for judge, values in verdict_scores(connection, record):
        yield MetricColumn(metric=_of_judge(judge), values=values)


def _of_judge(judge: Judge) -> MetricFacts:
    scores = judge.scores.values()
    return MetricFacts(
        name=judge.label,
        title=judge.label,
        meaning=f"mean score of the verdicts of {judge.record.model} by the rubric {judge.rubric_digest[:12]}",
        highest=max(scores),
        lowest=min(*scores, judge.unanswered),
    )


MOST_TRACED = 20
"""The wins of a pair whose traces are compared, and as many of its losses: those with the largest differences."""

Tell = Callable[[str], None]
"""Takes what is being done, in words."""

Plans = Mapping[str, Plan | None]
"""The plans of runs by their ids, with ids in place of the names of runs to compare with."""


def compare(
    connection: Connection,
    runs: Sequence[str],
    *,
    against: str | None = None,
    metrics: Sequence[str] = (),
    repeats: bool = False,
    tell: Tell = lambda _: None,
) -> Comparison:
    """Compare runs as they stand; see `compare_runs`.

    Raises InputError where fewer than two runs are named, or they share no questions or no score.
    """
    check_names(metrics)
    systems = compared_questions.compared_systems(connection, tuple(runs), repeats=repeats)
    chosen = _pairs(connection, systems, against)
    tell("reading the questions")
    shared = compared_questions.shared_questions(connection, systems)
    columns = {}
    for number, (name, records) in enumerate(systems.items(), start=1):
        tell(f"scoring run {number} of {len(systems)}")
        columns[name] = system_columns(connection, records)
    plans = {name: _plan(connection, name, systems) for name in systems}
    measured = compared_metrics(columns, shared.compared, metrics, _planned_metric(plans))
    differences = {}
    for metric in measured:
        tell(f"testing {metric.title}")
        demands = [_demands(plans, pair, metric.name) for pair in chosen]
        differences[metric.name] = _differences(columns, chosen, metric, shared, demands)
    tell("testing kinds of questions")
    kinds = kind_differences(columns, chosen, measured[0], shared)
    tell("adding up costs")
    compared = tuple(_runs(connection, systems, columns, measured, shared, plans))
    traces = compared_questions.Traces(
        connection, {run.id: columns[run.id][measured[0].name].values for run in compared}
    )
    pairs = []
    for place, (first, second) in enumerate(chosen):
        tell(f"comparing traces of pair {place + 1} of {len(chosen)}")
        of_metrics = {name: of[place] for name, of in differences.items()}
        pair = _pair(first, second, columns, of_metrics, shared, traces, measured[0])
        pairs.append(replace(pair, plans=tuple(_planning(plans, (first, second), measured[0].name))))
    return Comparison(
        is_fixed=shared.are_fixed,
        questions=len(shared.compared),
        left_out=shared.left_out,
        metrics=measured,
        deciding=tuple(each for each in shared_metrics(columns, shared.compared).values() if not each.is_count),
        runs=compared,
        pairs=tuple(pairs),
        kinds=kinds,
        front=_front(compared, measured[0]),
    )


def _pairs(connection: Connection, systems: compared_questions.Systems, against: str | None) -> list[tuple[str, str]]:
    """The pairs to compare: all of them, or each other run with that one."""
    if against is None:
        return list(combinations(systems, 2))
    named = resolve_run(connection, against)
    base = next((name for name, of in systems.items() if named in (each.id for each in of)), None)
    if base is None:
        raise InputError(f"--against {against} is none of the runs that are compared; name it among them too")
    return [(run_id, base) for run_id in systems if run_id != base]


def _plan(connection: Connection, name: str, systems: compared_questions.Systems) -> Plan | None:
    """The plan of the first run of a system, with the systems in place of the runs to compare with, by their ids."""
    plan = resolved_plan(connection, systems[name][0])
    if plan is None or plan.comparison is None:
        return plan
    system_of = {each.id: system for system, of in systems.items() for each in of}
    others = tuple(dict.fromkeys(system_of.get(run, run) for run in plan.comparison.runs))
    return replace(plan, comparison=replace(plan.comparison, others=others))


def _planned_metric(plans: Plans) -> str:
    """The metric by which the first plan compares that has a comparison of these runs; empty where none has."""
    found = (planned_comparison(plan, plans.keys() - {run}) for run, plan in plans.items())
    return next((comparison.metric for comparison in found if comparison), "")


def _planning(plans: Plans, pair: tuple[str, str], metric: str) -> dict[str, Demands]:
    """What those of two runs demand whose plans compare them by this metric, by their ids."""
    others = zip(pair, reversed(pair), strict=True)
    found = {run: planned_comparison(plans[run], [other]) for run, other in others}
    return {run: each.demands for run, each in found.items() if each and each.metric == metric}


def _demands(plans: Plans, pair: tuple[str, str], metric: str) -> Demands:
    """What is asked of a comparison: the strictest of what the plans of its runs say."""
    demanded = _planning(plans, pair, metric).values()
    if not demanded:
        return USUAL
    return Demands(alpha=min(each.alpha for each in demanded), least=max(each.least for each in demanded))


def _differences(
    columns: Mapping[str, MetricColumns],
    chosen: Sequence[tuple[str, str]],
    metric: MetricFacts,
    shared: compared_questions.SharedQuestions,
    demands: Sequence[Demands],
) -> list[Difference]:
    pairs = (paired(columns[first], columns[second], metric.name, shared.compared) for first, second in chosen)
    family = [list(pair.values()) for pair in pairs]
    return differences_of(family, metric.span, demands, is_fixed=shared.are_fixed)


def _pair(
    first: str,
    second: str,
    columns: Mapping[str, MetricColumns],
    differences: Mapping[str, Difference],
    shared: compared_questions.SharedQuestions,
    traces: compared_questions.Traces,
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
    systems: compared_questions.Systems,
    columns: Mapping[str, MetricColumns],
    metrics: Sequence[MetricFacts],
    shared: compared_questions.SharedQuestions,
    plans: Plans,
) -> Iterator[ComparedRun]:
    names, interval = compared_questions.distinct_names(connection, [*systems]), interval_of(is_fixed=shared.are_fixed)
    for record, *others in systems.values():
        repeats = (record.id, *(each.id for each in others)) if others else ()
        costs = read_question_costs(connection, [record, *others], shared.compared)
        values = {each.name: _known(columns[record.id][each.name].values, shared) for each in metrics}
        yield ComparedRun(
            id=record.id,
            name=names[record.id],
            system=record.system,
            model=record.model_name,
            dataset=record.dataset,
            standing=shared.standings[record.id],
            scores={each.name: _score(each, values[each.name], interval) for each in metrics},
            costs=read_costs(connection, [record, *others]),
            costs_per_question=mean_costs([*costs.values()]) if costs else None,
            cost_intervals=cost_intervals(costs),
            repeats=repeats,
            unplanned=unplanned_of(
                plans[record.id], [each.name for each in metrics], [run for run in names if run != record.id]
            ),
        )


def _known(values: Mapping[str, float | None], shared: compared_questions.SharedQuestions) -> list[float]:
    return [value for key in shared.compared if (value := values.get(key)) is not None]


def _score(metric: MetricFacts, values: Sequence[float], interval: IntervalOf) -> RunScore:
    return RunScore(mean=fmean(values) if values else None, interval=interval(metric, values))


def _front(runs: Sequence[ComparedRun], primary: MetricFacts) -> CostFront | None:
    """Quality against cost; None of a number of things, which is no quality."""
    if primary.is_count:
        return None
    costs = {run.id: run.costs_per_question for run in runs}
    return cost_front(costs, {run.id: run.scores[primary.name].mean for run in runs})


@operation("comparisons.show", "GET", "/comparisons", Scope.READ)
def compare_runs(
    runs: Sequence[str],
    *,
    against: str | None = None,
    metrics: Sequence[str] = (),
    repeats: bool = False,
    tell: Annotated[Tell, LOCAL_ONLY] = lambda _: None,
) -> Comparison:
    """Say which of several runs on the same questions is better, by how much, how sure that is, where and why.

    against: one of them, with which alone the others are compared. metrics: the first one decides; the main scores that
    all runs have where none is named. repeats: whether each run stands for all that repeat it with other seeds; those
    that are named are one system anyway.
    """
    with reading() as connection:
        return compare(connection, runs, against=against, metrics=metrics, repeats=repeats, tell=tell)
