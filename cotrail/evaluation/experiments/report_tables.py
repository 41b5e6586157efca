"""Reports as values: charts, tables and whole reports, for a terminal, a file or a program to draw."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.humanize import count
from cotrail.evaluation.metrics.confidence_intervals import share_interval


class ChartPoint(Struct, frozen=True, kw_only=True):
    """A score in points out of 100; `answered` is that of `report_tables.Mean`.

    low, high: the ends of its 95 % confidence interval over questions, where there is one.
    runs: the names in the experiment of the runs that it was computed from.
    """

    value: float
    low: float | None = None
    high: float | None = None
    answered: bool = True
    runs: tuple[str, ...] = ()


def point_of(value: float, interval: "Ends | None", **fields: Any) -> ChartPoint:
    """The point of a mean over questions, from 0 to 1, with its confidence interval where it has one."""
    low, high = (100 * interval.low, 100 * interval.high) if interval else (None, None)
    return ChartPoint(value=100 * value, low=low, high=high, **fields)


def point_of_share(count: int, of: int, **fields: Any) -> ChartPoint:
    """The point of a share of questions, with its confidence interval."""
    return point_of(count / of, share_interval(count, of), **fields)


Shade = Literal["light", "middle", "strong"]
"""How much a system stands out: a baseline is light, what a paper is about strong."""


class Series(Struct, frozen=True, kw_only=True):
    """A system's points, one per label; published: their source, empty for own results."""

    system: str
    shade: Shade
    points: tuple[ChartPoint | None, ...]
    published: str = ""


class Panel(Struct, frozen=True, kw_only=True):
    """One of several plots side by side."""

    title: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]


class Chart(Struct, frozen=True, kw_only=True):
    """A chart; name: its file's name; axis, across: titles of the value axis, from 0 to 100, and of the label axis."""

    name: str
    title: str
    axis: str
    kind: Literal["bars", "lines"]
    panels: tuple[Panel, ...]
    across: str = ""

    @property
    def has_intervals(self) -> bool:
        """Whether any point has a confidence interval."""
        return any(
            point.low is not None
            for panel in self.panels
            for series in panel.series
            for point in filter(None, series.points)
        )


Unit = Literal[
    "text", "passage", "goal", "system", "reader", "place", "metric",
    "score", "mean", "percent", "gain",
    "decimal", "average", "count", "seconds", "dollars", "probability",
]  # fmt: skip
"""Type of a column's values: texts (`passage`: long ones); names (see `ReportTable.names`); scores (`mean`: without
deviation, `percent`: with two decimals) and their differences; numbers (`average`: with two decimals)."""


class Mean(Struct, frozen=True, kw_only=True):
    """A mean over questions, then over demonstration sets.

    deviation: the sample standard deviation between the sets; None where there is one set.
    answered: whether every question has an answer; those without count 0.
    interval: the 95 % confidence interval over the questions; None where it isn't known, as of published means.
    """

    mean: float
    deviation: float | None = None
    sets: int | None = None
    answered: bool = True
    interval: "Interval | None" = None


class Share(Struct, frozen=True, kw_only=True):
    """`count` out of `of`."""

    count: int
    of: int


class EMAndF1(Struct, frozen=True, kw_only=True):
    """EM and F1 of the same answers; None where not available."""

    em: Mean | None
    f1: Mean | None


class Interval(Struct, frozen=True, kw_only=True):
    """Confidence interval of a difference or of a mean."""

    low: float
    high: float


class Ends(Protocol):
    """Any interval."""

    @property
    def low(self) -> float:
        """Its lower end."""

    @property
    def high(self) -> float:
        """Its upper end."""


def shown_interval(found: Ends | None) -> Interval | None:
    """The ends of an interval, however it was computed."""
    return Interval(low=found.low, high=found.high) if found else None


Value = str | int | float | Mean | EMAndF1 | Share | Interval | None


class Column(Struct, frozen=True):
    """A column: the key of its values, its heading, and their type."""

    name: str
    title: str
    unit: Unit = "text"


class TableRow(Struct, frozen=True, kw_only=True):
    """A row: values by column.

    published: its place in the paper; empty for own results. chosen: whether the search chose this row.
    runs: by column, the names in the experiment of the runs that the value was computed from, as far as no other column
        names them.
    """

    values: Mapping[str, Value]
    published: str = ""
    chosen: bool = False
    runs: Mapping[str, tuple[str, ...]] = {}


class ReportTable(Struct, frozen=True, kw_only=True):
    """A table with at least one row of own results; names: display names of values that are names, as a system's."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...] = ()
    names: Mapping[str, str] = {}


def listing(
    name: str, title: str, columns: Sequence[Column], rows: Sequence[TableRow], *, notes: Iterable[str] = ()
) -> ReportTable | None:
    """Make a table of these columns, without empty ones; None where there is no row."""
    used = [column for column in columns if any(row.values.get(column.name) is not None for row in rows)]
    return table_of(name, title, used, rows, notes) if rows else None


def merged_rows(parts: Iterable[tuple[Mapping[str, Value], Mapping[str, Value], tuple[str, ...]]]) -> list[TableRow]:
    """Merge parts with equal labels into one row each; a part has labels, values, and the names of the runs behind."""
    rows: dict[tuple[Value, ...], TableRow] = {}
    for labels, values, runs in parts:
        key = tuple(labels.values())
        row = rows.get(key, TableRow(values=labels))
        rows[key] = replace(row, values={**row.values, **values}, runs={**row.runs, **dict.fromkeys(values, runs)})
    return list(rows.values())


def table_of(
    name: str, title: str, columns: Sequence[Column], rows: Sequence[TableRow], notes: Iterable[str]
) -> ReportTable:
    """Make a table; rows are cut to these columns, and notes that the values require are added."""
    cut_rows = [replace(row, values={c.name: row.values.get(c.name) for c in columns}) for row in rows]
    about = [
        *notes,
        *_intervals(cut_rows, columns),
        *_deviations([row.values[c.name] for row in cut_rows for c in columns if c.unit == "score"]),
    ]
    if not all(mean.answered for row in cut_rows for value in row.values.values() for mean in _means(value)):
        about.append(
            "* Some of these questions have no answer (yet): EM and F1 count them 0, and those nowhere that were never "
            "asked."
        )
    return ReportTable(name=name, title=title, columns=tuple(columns), rows=tuple(cut_rows), notes=tuple(about))


def _intervals(rows: Iterable[TableRow], columns: Sequence[Column]) -> Iterator[str]:
    of_means = [column.name for column in columns if column.unit in ("score", "mean")]
    values = (row.values[name] for row in rows for name in of_means)
    if any(isinstance(value, Mean) and value.interval and value.deviation is None for value in values):
        yield "In brackets: the 95 % confidence interval of a mean over these questions."


def _deviations(values: Iterable[Value]) -> Iterator[str]:
    deviating = (value for value in values if isinstance(value, Mean) and value.deviation is not None)
    sets = sorted({mean.sets for mean in deviating if mean.sets})
    if sets:
        counts = f"{sets[0]}" if len(sets) == 1 else f"{sets[0]} to {sets[-1]}"
        yield f"± is the sample standard deviation between {counts} demonstration sets."


def _means(value: Value) -> Iterator[Mean]:
    if isinstance(value, Mean):
        yield value
    elif isinstance(value, EMAndF1):
        yield from (each for each in (value.em, value.f1) if each)


NO_RESULTS = "No run of the experiment has results yet."


class ReportedRun(Struct, frozen=True, kw_only=True):
    """A run behind a report; name: in the experiment, or its id; facts: its configuration as names and values."""

    name: str
    id: str
    state: str
    facts: tuple[tuple[str, str], ...]

    @property
    def page(self) -> str:
        """The file of its own page, relative to the report."""
        return f"runs/{self.id}.html"

    @property
    def anchor(self) -> str:
        """The id of its configuration on the report's page."""
        return f"run-{self.id}"


class ExperimentReport(Struct, frozen=True, kw_only=True):
    """The results of an experiment next to the published ones.

    subject: the protocol, models, datasets, and when it began; empty for runs that are only compared.
    summary: how far it is, what the numbers are, and the source of the published ones.
    tables: numbers unrounded, scores from 0 to 1.
    runs: those behind tables and figures; plan: all that was decided before them, as names and values.
    """

    summary: str
    tables: tuple[ReportTable, ...]
    plots: tuple[Chart, ...] = ()
    subject: str = ""
    runs: tuple[ReportedRun, ...] = ()
    plan: tuple[tuple[str, str], ...] = ()


def completeness(runs: Sequence[bool]) -> str:
    """How many runs have an answer to every question, in words; runs: whether each has."""
    missing = runs.count(False)
    return f"{count(missing, 'run')} with questions that have no answer (yet)" if missing else "all answered"


def summary_of(answered: Sequence[bool], *about: str) -> str:
    """How many runs there are and have an answer to every question, and what else there is to say."""
    return " ".join((f"{count(len(answered), 'run')}; {completeness(answered)}.", *about))
