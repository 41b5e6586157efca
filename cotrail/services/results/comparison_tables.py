"""Tables of a comparison: scores, differences, wins, kinds of questions, costs."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cotrail.common.humanize import percent
from cotrail.common.structs import common_fields
from cotrail.common.toml_files import read_toml
from cotrail.evaluation.comparison.differences import POWER, Difference
from cotrail.evaluation.experiments.report_tables import (
    Column,
    ReportTable,
    TableRow,
    Unit,
    Value,
    listing,
    shown_interval,
)
from cotrail.evaluation.metrics.metric import MetricFacts
from cotrail.services.results.comparison import ComparedRun, Comparison, Measure, RunCosts

_NOTES: dict[str, str] = read_toml(Path(__file__).with_name("notes.toml"))
_COST_UNITS: dict[Measure, Unit] = {"dollars": "dollars", "tokens": "decimal", "seconds": "seconds"}


def comparison_tables(comparison: Comparison) -> list[ReportTable]:
    """All tables that have rows."""
    tables = (
        scores(comparison),
        *(differences(comparison, *metrics) for metrics in _tabled(comparison)),
        wins(comparison),
        costs(comparison),
        kinds(comparison),
    )
    return [table for table in tables if table]


def scores(comparison: Comparison) -> ReportTable | None:
    """The runs with their scores on the compared questions."""
    columns = [Column("run", "Run"), Column("system", "System"), Column("model", "Model")]
    columns += [Column("unasked", "Not asked", "count")] if any(run.standing.unasked for run in comparison.runs) else []
    interval = "95 % interval" if comparison.is_fixed else "95 % interval at every stop"
    for metric in comparison.metrics:
        columns += [
            Column(metric.name, metric.title, _unit(metric, "mean")),
            Column(f"{metric.name} interval", interval, _unit(metric, "mean")),
        ]
    rows = [TableRow(values=dict(_scores(comparison, run))) for run in comparison.runs]
    return listing("scores", "Scores", columns, rows)


def _scores(comparison: Comparison, run: ComparedRun) -> Iterator[tuple[str, Value]]:
    yield from {"run": run.name, "system": run.system, "model": run.model}.items()
    yield "unasked", run.standing.unasked or None
    for metric in comparison.metrics:
        score = run.scores[metric.name]
        yield metric.name, score.mean
        yield f"{metric.name} interval", shown_interval(score.interval)


def _tabled(comparison: Comparison) -> Iterable[Sequence[MetricFacts]]:
    """The metrics of each table of differences: of two runs, those with the same unit share one, as each has a row."""
    if len(comparison.pairs) > 1:
        return [(metric,) for metric in comparison.metrics]
    by_unit: dict[bool, list[MetricFacts]] = {}
    for metric in comparison.metrics:
        by_unit.setdefault(metric.is_count, []).append(metric)
    return by_unit.values()


def differences(comparison: Comparison, *metrics: MetricFacts) -> ReportTable | None:
    """The differences of all pairs by metrics that have the same unit."""
    rows = [
        TableRow(
            values={"metric": metric.title}
            | _pair(comparison, pair.first, pair.second)
            | _difference(pair.differences[metric.name])
        )
        for metric in metrics
        for pair in comparison.pairs
    ]
    first, unit = metrics[0], _unit(metrics[0], "gain")
    columns = (
        *([Column("metric", "Metric")] if len(metrics) > 1 else []),
        Column("first", "Run"),
        Column("second", "less run"),
        Column("mean", "Difference", unit),
        Column("interval", "Interval" if comparison.is_fixed else "Interval at every stop", unit),
        Column("p", "p", "probability"),
        *([Column("corrected", "p, corrected", "probability")] if len(comparison.pairs) > 1 else []),
        Column("verdict", "Verdict"),
        Column("questions", "Questions", "count"),
        Column("needed", "Needed", "count"),
    )
    shared = "Differences in numbers" if first.is_count else "Differences in points"
    title = f"Differences, {first.title}" if len(metrics) == 1 else shared
    notes = (_NOTES["needed"].format(power=percent(POWER, 0)),) if comparison.primary in metrics else ()
    return listing(first.name, title, columns, rows, notes=notes)


def wins(comparison: Comparison) -> ReportTable | None:
    """How many questions the run of a row answers better than that of a column."""
    counts: dict[tuple[str, str], int] = {}
    for pair in comparison.pairs:
        counts[pair.first, pair.second] = len(pair.outcomes.wins)
        counts[pair.second, pair.first] = len(pair.outcomes.losses)
    columns = [Column("run", "Run"), *(Column(run.id, f"than {run.name}", "count") for run in comparison.runs)]
    rows = [
        TableRow(values={"run": run.name, **{other.id: counts.get((run.id, other.id)) for other in comparison.runs}})
        for run in comparison.runs
    ]
    notes = (f"By {comparison.primary.title}; on all other questions that were compared the two runs are equal.",)
    title = "Questions with more" if comparison.primary.is_count else "Questions answered better"
    return listing("wins", title, columns, rows, notes=notes)


def costs(comparison: Comparison) -> ReportTable | None:
    """What a question cost in each run, and which runs are on the front."""
    front = comparison.front
    measure: Measure = front.measure if front else "tokens"
    rows = [
        TableRow(
            values={
                "run": run.name,
                "quality": run.scores[comparison.primary.name].mean,
                **(common_fields(run.costs_per_question, RunCosts) if run.costs_per_question else {}),
                "interval": shown_interval(run.cost_intervals[measure]),
                "total": run.costs.dollars,
                "front": "on it" if front and run.id in front.front else None,
            }
        )
        for run in comparison.runs
    ]
    columns = (
        Column("run", "Run"),
        Column("quality", comparison.primary.title, _unit(comparison.primary, "mean")),
        Column("calls", "Model calls", "decimal"),
        Column("searches", "Searches", "decimal"),
        Column("prompt_tokens", "Tokens read", "decimal"),
        Column("generated_tokens", "Tokens written", "decimal"),
        Column("seconds", "Computed in", "seconds"),
        Column("dollars", "US dollars", "dollars"),
        Column("interval", f"95 % interval, {measure}", _COST_UNITS[measure]),
        Column("total", "US dollars, whole run", "dollars"),
        Column("front", f"Front by {measure}"),
    )
    notes = (_NOTES["costs"], "" if comparison.is_fixed else _NOTES["open_costs"], _NOTES["front"] if front else "")
    return listing("costs", "What a question costs", columns, rows, notes=tuple(filter(None, notes)))


def kinds(comparison: Comparison) -> ReportTable | None:
    """Differences by kind of question."""
    rows = [
        TableRow(
            values={"sort": each.sort, "kind": each.kind}
            | _pair(comparison, each.first, each.second)
            | _difference(each.difference)
        )
        for each in comparison.kinds
    ]
    unit = _unit(comparison.primary, "gain")
    columns = (
        Column("sort", "Sort"),
        Column("kind", "Kind"),
        Column("first", "Run"),
        Column("second", "less run"),
        Column("questions", "Questions", "count"),
        Column("mean", "Difference", unit),
        Column("interval", "Interval", unit),
        Column("corrected", "p, corrected", "probability"),
    )
    title = f"Differences by kind of question, {comparison.primary.title}"
    return listing("kinds", title, columns, rows, notes=(_NOTES["kinds"],))


def _pair(comparison: Comparison, first: str, second: str) -> dict[str, Value]:
    return {"first": comparison.run(first).name, "second": comparison.run(second).name}


def _difference(difference: Difference) -> dict[str, Value]:
    return {
        "mean": difference.mean,
        "interval": shown_interval(difference.interval),
        "p": difference.test.p_value if difference.test else None,
        "corrected": difference.corrected,
        "verdict": _verdict(difference),
        "questions": difference.questions,
        "needed": difference.needed,
    }


def _verdict(difference: Difference) -> str | None:
    if difference.finding == "unknown":
        return None
    return difference.verdict if difference.finding == "shown" else difference.finding


def _unit(metric: MetricFacts, of_scores: Unit) -> Unit:
    return "average" if metric.is_count else of_scores
