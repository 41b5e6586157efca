"""Recommendation of a comparison: which of its runs to take on each dataset, and what that one costs."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from statistics import fmean
from typing import Literal

from msgspec import Struct

from cotrail.common.humanize import count
from cotrail.core.money import dollars
from cotrail.evaluation.comparison.recommendation import MARGIN, Candidate, Recommendation, Standing, recommend
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
    Column("needed", "Needed", "count"),
)
NOTE = (
    f"To take is the best run of a dataset, or a cheaper one that is as good: at most {100 * MARGIN:.0f} points behind "
    "by the upper end of its interval. Worse: shown by a paired permutation test whose p-values are corrected for all "
    "pairs of runs (Holm). Needed: the number of questions by which such a difference would be shown."
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
    """The run to take, why, what it costs, and which cheaper ones aren't decided yet."""
    found, taken, best = choice.recommendation, choice.recommendation.taken, choice.recommendation.best
    what = f"{100 * taken.mean:.1f} {choice.metric.title} for {_cost(taken, choice.unit)} a question"
    why = "the best" if taken is best else f"as good as {best.name}, for {_cost(best, choice.unit)}"
    open_yet = [each for each in found.standings if not (each.is_worse or each.is_as_good) and _is_cheaper(each, taken)]
    cheaper = f" {_undecided(open_yet[0], choice.unit)}" if open_yet else ""
    return f"On {choice.dataset} take {taken.name}, {why}: {what}.{cheaper}"


def _is_cheaper(one: Standing, other: Standing) -> bool:
    return one.cost is not None and other.cost is not None and one.cost < other.cost


def _undecided(standing: Standing, unit: Unit) -> str:
    needed = "" if standing.needed is None else f"; about {count(standing.needed, 'question')} would show it"
    return f"Whether {standing.name}, for {_cost(standing, unit)}, is worse isn't decided{needed}."


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
            "needed": None if standing is choice.recommendation.best else standing.needed,
        },
        chosen=standing.name == choice.recommendation.chosen,
    )


def _standing(found: Recommendation, standing: Standing) -> str:
    if standing is found.best:
        return "best"
    if standing.is_as_good:
        return "as good"
    return "worse" if standing.is_worse else "undecided"


def _cost(standing: Standing, unit: Unit) -> str:
    cost = standing.cost or 0.0
    return dollars(Decimal(str(cost))) if unit == "dollars" else f"{cost:,.0f} tokens"
