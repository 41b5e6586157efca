"""Recommendation of a comparison: which of its runs to take on each dataset, and what that one costs."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from statistics import fmean
from typing import Literal

from msgspec import Struct

from cotrail.common.humanize import count
from cotrail.core.money import dollars
from cotrail.evaluation.comparison.recommendation import Candidate, Recommendation, Standing, recommend
from cotrail.evaluation.experiments.compare.runs import ComparedRun
from cotrail.evaluation.experiments.report_tables import Column, Interval, ReportTable, TableRow, listing
from cotrail.evaluation.metrics.metric import Metric
from cotrail.evaluation.metrics.registry import main_metrics

Unit = Literal["dollars", "tokens"]
"""What a question costs: dollars where those of all runs are known, otherwise tokens, read and written."""

COLUMNS = (
    Column("dataset", "Dataset"),
    Column("run", "Run"),
    Column("metric", "Metric"),
    Column("mean", "Mean", "mean"),
    Column("behind", "Behind the best", "mean"),
    Column("interval", "95 % interval", "mean"),
    Column("p", "p, corrected", "probability"),
    Column("dollars", "US dollars a question", "dollars"),
    Column("tokens", "Tokens a question", "count"),
    Column("standing", "Standing"),
)
NOTE = (
    "To take is the cheapest run that the best one of its dataset isn't shown to be better than, by a paired "
    "permutation test whose p-values are corrected for all pairs of runs (Holm). Not shown to be worse isn't equal: "
    "the interval says how far it may be behind."
)


class DatasetChoice(Struct, frozen=True, kw_only=True):
    """What is recommended on a dataset, by which metric, and in what costs are counted."""

    dataset: str
    metric: Metric
    unit: Unit
    recommendation: Recommendation


def choices(runs: Sequence[ComparedRun]) -> tuple[DatasetChoice, ...]:
    """What is recommended on each dataset whose runs, two at least, are all over.

    Runs that differ in their seeds only are one, with the mean of each question's scores.
    """
    of_datasets: dict[str, list[ComparedRun]] = defaultdict(list)
    for run in runs:
        of_datasets[run.cell.dataset].append(run)
    return tuple(_choices(of_datasets))


def recommendation_table(found: Sequence[DatasetChoice]) -> ReportTable | None:
    """The runs of each dataset beside the best of them; None where nothing is recommended."""
    rows = [_row(choice, standing) for choice in found for standing in choice.recommendation.standings]
    return listing("recommendation", "Which to take", COLUMNS, rows, notes=(NOTE,))


def sentence(choice: DatasetChoice) -> str:
    """The run to take, why, and what it costs."""
    taken, best = choice.recommendation.taken, choice.recommendation.best
    what = f"{100 * taken.mean:.1f} {choice.metric.title} for {_cost(taken, choice.unit)} a question"
    if taken is best:
        rivals = sum(not each.is_worse for each in choice.recommendation.standings) - 1
        none = f"no difference from {count(rivals, 'other')} is shown, and none is cheaper"
        why = none if rivals else "better than the others"
    else:
        why = f"{best.name} has {100 * best.mean:.1f} for {_cost(best, choice.unit)}, and isn't shown to be better"
    return f"On {choice.dataset} take {taken.name}: {what}; {why}."


def _choices(of_datasets: Mapping[str, Sequence[ComparedRun]]) -> Iterator[DatasetChoice]:
    for dataset, runs in of_datasets.items():
        groups: dict[str, list[ComparedRun]] = defaultdict(list)
        for run in runs:
            groups[run.cell.first].append(run)
        metric, keys = _primary(runs)
        if metric and len(groups) > 1 and all(run.is_over for run in runs):
            unit: Unit = "tokens" if any(run.dollars is None for run in runs) else "dollars"
            candidates = [_candidate(name, group, metric.name, keys, unit) for name, group in groups.items()]
            recommendation = recommend(candidates, metric.span)
            yield DatasetChoice(dataset=dataset, metric=metric, unit=unit, recommendation=recommendation)


def _primary(runs: Sequence[ComparedRun]) -> tuple[Metric | None, Sequence[str]]:
    """The first of the main scores that all runs have, and the questions that have it in each of them."""
    for metric in main_metrics():
        keys = [key for key in runs[0].asked if all(_score(run, key, metric.name) is not None for run in runs)]
        if keys and not metric.is_count:
            return metric, keys
    return None, ()


def _candidate(name: str, runs: Sequence[ComparedRun], metric: str, keys: Sequence[str], unit: Unit) -> Candidate:
    costs = [run.tokens if unit == "tokens" else run.dollars or 0.0 for run in runs]
    scores = {key: fmean(_score(run, key, metric) or 0.0 for run in runs) for key in keys}
    return Candidate(name=name, scores=scores, cost=fmean(costs))


def _score(run: ComparedRun, key: str, metric: str) -> float | None:
    return run.asked[key].get(metric) if key in run.asked else None


def _row(choice: DatasetChoice, standing: Standing) -> TableRow:
    interval = standing.interval
    return TableRow(
        values={
            "dataset": choice.dataset,
            "run": standing.name,
            "metric": choice.metric.title,
            "mean": standing.mean,
            "behind": standing.behind,
            "interval": Interval(low=interval.low, high=interval.high) if interval else None,
            "p": standing.p_value,
            choice.unit: standing.cost,
            "standing": _standing(choice.recommendation, standing),
        },
        chosen=standing.name == choice.recommendation.chosen,
    )


def _standing(found: Recommendation, standing: Standing) -> str:
    if standing is found.best:
        return "best"
    return "worse" if standing.is_worse else "not shown to be worse"


def _cost(standing: Standing, unit: Unit) -> str:
    cost = standing.cost or 0.0
    return dollars(Decimal(str(cost))) if unit == "dollars" else f"{cost:,.0f} tokens"
