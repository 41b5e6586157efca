"""Tables as values, for a terminal, a file or a program to show; scores go from 0 to 1."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from cotrail.evaluation.experiments.ircot.cells import Goal, Line
from cotrail.evaluation.experiments.ircot.measures import Mean, Runs, Share, runs_by_line
from cotrail.evaluation.experiments.ircot.naming import in_order, place_of, place_title

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
    "count",
    "seconds",
    "probability",
]
"""What a column holds: texts, of which a `passage` is long; names (see `naming`); scores (`mean` is one without
deviation, `percent` one with two decimals), their differences; numbers."""


class Pair(Struct, frozen=True, kw_only=True):
    """EM and F1 of the same answers; None where there is none."""

    em: Mean | None
    f1: Mean | None


class Interval(Struct, frozen=True, kw_only=True):
    """What a difference lies between."""

    low: float
    high: float


Value = str | int | float | Mean | Pair | Share | Interval | None


class Column(Struct, frozen=True):
    """A column: the key of its values, what stands over it, and what they are."""

    name: str
    title: str
    unit: Unit = "text"


class Row(Struct, frozen=True, kw_only=True):
    """A row: values by column.

    published: where the paper has it; empty for one's own results. chosen: whether it was chosen of several.
    """

    values: Mapping[str, Value]
    published: str = ""
    chosen: bool = False


class Table(Struct, frozen=True, kw_only=True):
    """A table with at least one row of one's own."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


SYSTEM, READER = Column("system", "System", "system"), Column("reader", "Reader", "reader")
GOAL = Column("goal", "For", "goal")
MODEL, PLACE = Column("model", "Model"), Column("place", "Dataset", "place")


def names_of(line: Line) -> dict[str, Value]:
    """What names a line in a list; where only paragraphs are wanted, no reader is missing."""
    reader = None if line.goal == "retrieval" else line.reader
    return {"goal": line.goal, "place": place_of(line), "model": line.model, "system": line.system, "reader": reader}


def line_rows(
    results: Runs,
    goal: Goal,
    labels: Sequence[Column],
    values: Callable[[Line, Runs], Mapping[str, Value]],
    *,
    transfer: bool = False,
) -> list[Row]:
    """A row for all lines that agree in the labels, with the values of each of them.

    transfer: of the lines whose demonstrations are another dataset's, or else of the others.
    """
    rows: dict[tuple[str, ...], dict[str, Value]] = {}
    for line, runs in runs_by_line(results).items():
        if line.goal == goal and (line.demonstrations != line.dataset) == transfer:
            key = tuple(getattr(line, label.name) for label in labels)
            row = rows.setdefault(key, {label.name: name for label, name in zip(labels, key, strict=True)})
            row.update(values(line, runs))
    return [Row(values=row) for row in rows.values()]


def matrix(
    name: str,
    title: str,
    labels: Sequence[Column],
    own: Sequence[Row],
    theirs: Sequence[Row] = (),
    *,
    order: Callable[[Row], Any] | None = None,
    notes: Iterable[str] = (),
) -> Table | None:
    """A table with a column for each dataset that one's own rows have; None where they have none.

    theirs: published rows; those that have nothing in these columns are left out.
    """
    known = {label.name for label in labels}
    own = [row for row in own if any(value is not None for name, value in row.values.items() if name not in known)]
    places = in_order(
        place for row in own for place, value in row.values.items() if place not in known and value is not None
    )
    if not places:
        return None
    rows = [*own, *(row for row in theirs if any(place in row.values for place in places))]
    if order:
        rows.sort(key=order)
    columns = (*labels, *(Column(place, place_title(place), "score") for place in places))
    return _table(name, title, columns, rows, notes)


def listing(
    name: str, title: str, columns: Sequence[Column], rows: Sequence[Row], *, notes: Iterable[str] = ()
) -> Table | None:
    """A table of these columns, without those that no row has a value for; None where there is no row."""
    used = [column for column in columns if any(row.values.get(column.name) is not None for row in rows)]
    return _table(name, title, used, rows, notes) if rows else None


def _table(name: str, title: str, columns: Sequence[Column], rows: Sequence[Row], notes: Iterable[str]) -> Table:
    """The table, its rows with the values of these columns alone, its notes with those that the values need."""
    shown = [replace(row, values={c.name: row.values.get(c.name) for c in columns}) for row in rows]
    about = [*notes, *_deviations([row.values[c.name] for row in shown for c in columns if c.unit == "score"])]
    if not all(mean.answered for row in shown for value in row.values.values() for mean in _means(value)):
        about.append("* Some of these questions have no answer (yet): EM and F1 count them 0.")
    return Table(name=name, title=title, columns=tuple(columns), rows=tuple(shown), notes=tuple(about))


def _deviations(values: Iterable[Value]) -> Iterator[str]:
    deviating = (value for value in values if isinstance(value, Mean) and value.deviation is not None)
    sets = sorted({mean.sets for mean in deviating if mean.sets})
    if sets:
        counts = f"{sets[0]}" if len(sets) == 1 else f"{sets[0]} to {sets[-1]}"
        yield f"± is the sample standard deviation between {counts} demonstration sets."


def _means(value: Value) -> Iterator[Mean]:
    if isinstance(value, Mean):
        yield value
    elif isinstance(value, Pair):
        yield from (each for each in (value.em, value.f1) if each)
