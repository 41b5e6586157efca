"""The metrics of runs that are compared, and what judges say of them."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from sqlalchemy import Connection

from cotrail.common.nearest import guess
from cotrail.errors import InputError, UnknownNameError
from cotrail.evaluation.metrics.metric import MetricFacts
from cotrail.evaluation.metrics.registry import METRICS, main_metrics
from cotrail.models.queries.question_summaries import read_scores_by_question, read_summarized
from cotrail.models.queries.runs import RunRecord
from cotrail.services.views.compared_values import MetricColumn, MetricColumns
from cotrail.services.views.judges import Judge, verdict_scores
from cotrail.services.views.scored_questions import scores_by_question
from cotrail.services.views.summary_counts import is_current


def metric_columns(connection: Connection, record: RunRecord) -> MetricColumns:
    """All metrics of a run's questions as it stands, then what its judges say, by their labels."""
    scored = scores_by_question(connection, record)
    return _columns(connection, record, {key: each.scores for key, each in scored.items()})


def summarized_columns(connection: Connection, record: RunRecord) -> MetricColumns:
    """The same from the summaries of a sealed run, where they are complete: nothing is scored anew."""
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
    columns: Mapping[str, MetricColumns], keys: Collection[str], names: Sequence[str] = ()
) -> tuple[MetricFacts, ...]:
    """What to compare by, the primary one first: what is named, or else the main scores and judges that all runs have.

    columns: by run. Raises UnknownNameError where no run has what is named, InputError where one of them hasn't, or
    all have nothing in common.
    """
    found = _shared(columns, keys)
    for name in names:
        if name not in found:
            _refuse(columns, name)
    if names:
        return tuple(found[name] for name in dict.fromkeys(names))
    main = [metric.name for metric in main_metrics() if not metric.is_count]
    usual = tuple(found[name] for name in (*main, *(name for name in found if name not in METRICS)) if name in found)
    if not usual:
        raise InputError(
            "the runs have no score in common: their questions publish no answers, or none has ended in every run; "
            "wait for them, or name what to compare by with --metric"
        )
    return usual


def _shared(columns: Mapping[str, MetricColumns], keys: Collection[str]) -> dict[str, MetricFacts]:
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
