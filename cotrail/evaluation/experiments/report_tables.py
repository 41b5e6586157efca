"""Report tables as values, to be rendered for a terminal, a file or a program; scores are from 0 to 1."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Unit = Literal[
    "text",
    "passage",
    "goal",
    "system",
    "reader",
    "place",
    "metric",
    "score",
    "mean",
    "percent",
    "gain",
    "decimal",
    "average",
    "count",
    "seconds",
    "dollars",
    "probability",
]
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


def merged_rows(
    parts: Iterable[tuple[Mapping[str, Value], Mapping[str, Value], tuple[str, ...]]],
) -> list[TableRow]:
    """Merge parts with equal labels into one row each; a part has labels, values, and the names of the runs behind."""
    rows: dict[tuple[Value, ...], TableRow] = {}
    for labels, values, runs in parts:
        key = tuple(labels.values())
        row = rows.get(key, TableRow(values=labels))
        rows[key] = replace(row, values={**row.values, **values}, runs={**row.runs, **dict.fromkeys(values, runs)})
    return list(rows.values())


def published_row(where: str, label: str, model: str, /, **values: float) -> TableRow:
    """A row that a paper prints there."""
    return TableRow(values={"label": label, "model": model, **values}, published=where)


def published_percents(where: str, label: str, model: str, /, **percents: float) -> TableRow:
    """The same of shares that the paper prints in percent."""
    return published_row(where, label, model, **{name: round(value / 100, 4) for name, value in percents.items()})


def beside(
    name: str,
    title: str,
    columns: Sequence[Column],
    own: Sequence[TableRow],
    published: Sequence[TableRow],
    notes: Iterable[str] = (),
) -> ReportTable | None:
    """Put own rows before the paper's rows of the same `label`, in the paper's order; None without own rows.

    Labels that the paper lacks come first; rows of the paper that have none of the values are left out.
    """
    scores = {column.name for column in columns} - {"label", "model"}
    theirs = [row for row in published if row.values.keys() & scores]
    order = {row.values["label"]: place for place, row in reversed(list(enumerate(theirs)))}
    rows = sorted((*own, *theirs), key=lambda row: order.get(row.values["label"], 0))
    return listing(name, title, columns, rows, notes=notes) if own else None


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
        about.append("* Some of these questions have no answer (yet): EM and F1 count them 0.")
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
