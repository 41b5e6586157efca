"""Prints an experiment's tables: on the terminal and as Markdown; scores in points out of 100."""

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from cli.output import duration, heading
from cotrail.evaluation.experiments.ircot.naming import GOALS, METRICS, READERS, SYSTEMS, place_title
from cotrail.evaluation.experiments.report_tables import (
    Column,
    EMAndF1,
    Interval,
    Mean,
    ReportTable,
    Share,
    TableRow,
    Unit,
    Value,
)

NOTHING = "-"
"""Where there is no value."""

TEXTS: frozenset[Unit] = frozenset({"text", "passage", "goal", "system", "reader", "place", "metric"})
"""What stands at the left of its column; numbers stand at the right."""

NAMES: dict[Unit, Mapping[str, str]] = {"goal": GOALS, "system": SYSTEMS, "reader": READERS, "metric": METRICS}

NUMBERS: dict[Unit, Callable[[float], str]] = {
    "score": lambda value: f"{100 * value:.1f}",
    "mean": lambda value: f"{100 * value:.1f}",
    "percent": lambda value: f"{100 * value:.2f}",
    "gain": lambda value: f"{100 * value:+.1f}",
    "decimal": lambda value: f"{value:.1f}" if value < 100 else f"{value:,.0f}",
    "count": lambda value: f"{value:,.0f}",
    "seconds": duration,
    "probability": lambda value: "< 0.001" if value < 0.001 else f"{value:.3f}",
}


PASSAGE_WIDTH = 40
"""Characters in a line of a long text, as far as there is room."""


class Line(Struct, frozen=True, kw_only=True):
    """A row as text; remark: that it is published and where, or chosen."""

    cells: tuple[str, ...]
    remark: str
    published: bool
    chosen: bool


class Sheet(Struct, frozen=True, kw_only=True):
    """A table as text; the last column is that of remarks, where there are any."""

    title: str
    headings: tuple[str, ...]
    numeric: tuple[bool, ...]
    long: tuple[bool, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]

    @property
    def remarked(self) -> bool:
        """Whether any line has a remark."""
        return any(line.remark for line in self.lines)


def sheet(table: ReportTable) -> Sheet:
    """The table as text, for whatever shows it."""
    return Sheet(
        title=table.title,
        headings=tuple(column.title for column in table.columns),
        numeric=tuple(column.unit not in TEXTS for column in table.columns),
        long=tuple(column.unit == "passage" for column in table.columns),
        lines=tuple(_line(row, table.columns) for row in table.rows),
        notes=table.notes,
    )


def print_tables(tables: Sequence[ReportTable], screen: Console) -> None:
    """Prints the tables one below the other; where the output is no terminal, as wide as they are."""
    for table in tables:
        text = sheet(table)
        drawn = _drawn(text)
        if not screen.is_terminal:
            wide = screen.options.update(max_width=10_000)
            screen.width = max(screen.width, Measurement.get(screen, wide, drawn).maximum)
        screen.print()
        screen.print(heading(text.title), soft_wrap=True)
        screen.print(drawn)
        for note in text.notes:
            screen.print(Text(note, style="dim"), soft_wrap=not screen.is_terminal)


def as_markdown(text: Sheet) -> str:
    """The table in GitHub's form, below a heading of the second degree and above its notes."""
    rules = ["---:" if numeric else "---" for numeric in text.numeric]
    rows = [list(text.headings), *(list(line.cells) for line in text.lines)]
    drawn = [[_escaped(cell) for cell in row] for row in rows]
    if text.remarked:
        drawn = [[*row, remark] for row, remark in zip(drawn, ("", *(line.remark for line in text.lines)), strict=True)]
        rules.append("---")
    table = "\n".join(f"| {' | '.join(row)} |" for row in (drawn[0], rules, *drawn[1:]))
    return "\n\n".join((f"## {_escaped(text.title)}", table, *map(_escaped, text.notes))) + "\n"


def shown(value: Value, unit: Unit) -> str:
    """A value as people read it: `59.1 ± 0.9`, `49.3 | 60.7`, `12 of 40`, `+7.9`."""
    match value:
        case None:
            return NOTHING
        case str():
            return place_title(value) if unit == "place" else NAMES.get(unit, {}).get(value, value) or NOTHING
        case EMAndF1():
            return f"{shown(value.em, 'mean')} | {shown(value.f1, 'mean')}"
        case Share():
            return f"{value.count} of {value.of}"
        case Interval():
            return f"{shown(value.low, unit)} to {shown(value.high, unit)}"
        case Mean():
            number = NUMBERS[unit](value.mean) + ("" if value.answered else "*")
            spread = unit == "score" and value.deviation is not None
            return f"{number} ± {100 * (value.deviation or 0):.1f}" if spread else number
    return NUMBERS[unit](value)


def _line(row: TableRow, columns: Sequence[Column]) -> Line:
    return Line(
        cells=tuple(shown(row.values.get(column.name), column.unit) for column in columns),
        remark="chosen" if row.chosen else f"published, {row.published}" if row.published else "",
        published=bool(row.published),
        chosen=row.chosen,
    )


def _drawn(text: Sheet) -> RichTable:
    drawn = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title, numeric, long in zip(text.headings, text.numeric, text.long, strict=True):
        width = PASSAGE_WIDTH if long else None
        drawn.add_column(
            title, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold", max_width=width
        )
    if text.remarked:
        drawn.add_column("", overflow="fold")
    for line in text.lines:
        cells = (*line.cells, line.remark) if text.remarked else line.cells
        drawn.add_row(*cells, style="bold" if line.chosen else "dim" if line.published else "")
    return drawn


def _escaped(text: str) -> str:
    """What Markdown would take for its own, as itself."""
    return re.sub(r"([\\|*_<`])", r"\\\1", text)
