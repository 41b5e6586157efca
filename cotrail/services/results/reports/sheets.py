"""Tables of experiments as text, for every kind of display, and as Markdown; scores in points out of 100."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType

from msgspec import Struct

from cotrail.common.humanize import duration
from cotrail.core.money import dollars
from cotrail.evaluation.experiments import report_tables

EMPTY_CELL = "-"
"""Shown where there is no value."""

_MARKDOWN = re.compile(r"([\\|*_<`])")

TEXTS: frozenset[report_tables.Unit] = frozenset({"text", "passage", "goal", "system", "reader", "place", "metric"})
"""The units that are aligned to the left; numbers are aligned to the right."""

NARROW_COLUMNS = 5
"""The most columns of a narrow table."""

PAPER_COLUMNS = 10
"""The most columns of a table that is printed as one."""

RUN_COLUMNS = frozenset({"run", "against", "cell"})
"""Columns whose values are names or ids of runs."""

NUMBERS: dict[report_tables.Unit, Callable[[float], str]] = {
    "score": lambda value: f"{100 * value:.1f}",
    "mean": lambda value: f"{100 * value:.1f}",
    "percent": lambda value: f"{100 * value:.2f}",
    "gain": lambda value: f"{100 * value:+.1f}",
    "decimal": lambda value: f"{value:.1f}" if value < 100 else f"{value:,.0f}",
    "average": lambda value: f"{value:.2f}",
    "count": lambda value: f"{value:,.0f}",
    "seconds": duration,
    "dollars": lambda value: dollars(Decimal(str(value))),
    "probability": lambda value: "< 0.001" if value < 0.001 else f"{value:.3f}",
}


class SheetRow(Struct, frozen=True, kw_only=True):
    """A row as text; remark: whether it is published and where, or chosen.

    runs: for each cell the names of the runs behind it; of a cell that names a run, that one.
    """

    cells: tuple[str, ...]
    runs: tuple[tuple[str, ...], ...]
    remark: str
    published: bool
    chosen: bool


class Sheet(Struct, frozen=True, kw_only=True):
    """A table as text; the last column is that of remarks, where there are any."""

    title: str
    headings: tuple[str, ...]
    numeric: tuple[bool, ...]
    long: tuple[bool, ...]
    rows: tuple[SheetRow, ...]
    notes: tuple[str, ...]

    @property
    def is_narrow(self) -> bool:
        """Return whether two such tables fit side by side on a wide page."""
        return len(self.headings) + self.remarked <= NARROW_COLUMNS and not any(self.long)

    @property
    def is_broad(self) -> bool:
        """Return whether it has more columns than paper has room for: there each row is a paragraph."""
        return len(self.headings) + self.remarked > PAPER_COLUMNS

    @property
    def remarked(self) -> bool:
        """Return whether any row has a remark."""
        return any(row.remark for row in self.rows)


def sheet(table: report_tables.ReportTable) -> Sheet:
    """The table as text."""
    return Sheet(
        title=table.title,
        headings=tuple(column.title for column in table.columns),
        numeric=tuple(column.unit not in TEXTS for column in table.columns),
        long=tuple(column.unit == "passage" for column in table.columns),
        rows=tuple(_row(row, table) for row in table.rows),
        notes=table.notes,
    )


def as_markdown(text: Sheet) -> str:
    """The table in GitHub's form, below a heading of the second degree and above its notes."""
    rules = ["---:" if numeric else "---" for numeric in text.numeric]
    rows = [list(text.headings), *(list(row.cells) for row in text.rows)]
    table_rows = [[_escaped(cell) for cell in row] for row in rows]
    if text.remarked:
        table_rows = [
            [*row, remark] for row, remark in zip(table_rows, ("", *(row.remark for row in text.rows)), strict=True)
        ]
        rules.append("---")
    table = "\n".join(f"| {' | '.join(row)} |" for row in (table_rows[0], rules, *table_rows[1:]))
    return "\n\n".join((f"## {_escaped(text.title)}", table, *map(_escaped, text.notes))) + "\n"


def shown(value: report_tables.Value, unit: report_tables.Unit, names: Mapping[str, str] = MappingProxyType({})) -> str:
    """A value as people read it: `59.1 ± 0.9`, `59.1 (52.0-66.2)`, `49.3 | 60.7`, `12 of 40`, `+7.9`.

    names: see `ReportTable`.
    """
    match value:
        case None:
            return EMPTY_CELL
        case str():
            return (value if unit in ("text", "passage") else names.get(value, value)) or EMPTY_CELL
        case report_tables.EMAndF1():
            return f"{_alone(value.em)} | {_alone(value.f1)}"
        case report_tables.Share():
            return f"{value.count} of {value.of}"
        case report_tables.Interval():
            return f"{shown(value.low, unit)} to {shown(value.high, unit)}"
        case report_tables.Mean():
            return f"{_number(value, unit)}{_spread(value, unit)}"
    return NUMBERS[unit](value)


def _alone(value: report_tables.Mean | None) -> str:
    """A mean of a pair, which has no room for its interval."""
    return EMPTY_CELL if value is None else _number(value, "mean")


def _number(value: report_tables.Mean, unit: report_tables.Unit) -> str:
    return NUMBERS[unit](value.mean) + ("" if value.answered else "*")


def _spread(value: report_tables.Mean, unit: report_tables.Unit) -> str:
    """What stands behind a mean: its deviation between demonstration sets, or else its interval over questions."""
    if unit == "score" and value.deviation is not None:
        return f" ± {100 * value.deviation:.1f}"
    if unit in ("score", "mean") and value.interval and value.deviation is None:
        return f" ({shown(value.interval.low, unit)}-{shown(value.interval.high, unit)})"
    return ""


def _row(row: report_tables.TableRow, table: report_tables.ReportTable) -> SheetRow:
    return SheetRow(
        cells=tuple(shown(row.values.get(column.name), column.unit, table.names) for column in table.columns),
        runs=tuple(_runs(row, column) for column in table.columns),
        remark="chosen" if row.chosen else f"published, {row.published}" if row.published else "",
        published=bool(row.published),
        chosen=row.chosen,
    )


def _runs(row: report_tables.TableRow, column: report_tables.Column) -> tuple[str, ...]:
    value = row.values.get(column.name)
    if column.name in RUN_COLUMNS and isinstance(value, str):
        return (value,)
    return () if value is None else row.runs.get(column.name, ())


def _escaped(text: str) -> str:
    """The text with Markdown's own characters escaped."""
    return _MARKDOWN.sub(r"\\\1", text)
