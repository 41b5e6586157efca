"""Tables that fit the terminal: cells wrap between words, and a row that still doesn't fit becomes a paragraph.

Nothing is ever cut. Another program or a file gets whole lines.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cotrail.cli.terminal.output import heading
from cotrail.common.printable_text import one_line
from cotrail.services.results.reports.sheets import Sheet

WIDE, NARROW = 2, 1
"""Spaces between columns, and those where there is little room."""

EMPTY_CELL = "-"
"""A cell that says that there is nothing; a paragraph leaves it out."""


class Column(Struct, frozen=True, kw_only=True):
    """A column; whole: its cells never wrap; most: characters in a line of it, as far as there is room."""

    title: str = ""
    style: str = ""
    right: bool = False
    whole: bool = False
    most: int | None = None


Cell = str | Text


def print_rows(
    screen: Console, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], styles: Sequence[str] = ()
) -> None:
    """Prints rows of cells; styles: those of the rows, if any."""
    styles = styles or [""] * len(rows)
    if not screen.is_terminal:
        columns = [replace(column, most=None) for column in columns]
    texts = _by_column(columns, rows)
    whole = [_natural(column, cells) for column, cells in zip(columns, texts, strict=True)]
    least = [_least(column, cells) for column, cells in zip(columns, texts, strict=True)]
    if not screen.is_terminal:
        screen.width = max(screen.width, sum(whole) + WIDE * len(columns))
    for gap in (WIDE, NARROW):
        room = screen.width - gap * (len(columns) - 1)
        if sum(least) <= room:
            screen.print(_table(columns, rows, styles, _shared(whole, least, room), gap))
            return
    for row, style in zip(rows, styles, strict=True):
        _print_paragraph(screen, columns, row, style)


def _by_column(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[list[str]]:
    """The texts of each column, its title first."""
    return [[column.title, *(_plain(row[place]) for row in rows)] for place, column in enumerate(columns)]


def _plain(cell: Cell) -> str:
    return cell.plain if isinstance(cell, Text) else one_line(cell)


def _natural(column: Column, cells: Sequence[str]) -> int:
    width = max(cell_len(line) for cell in cells for line in cell.split("\n"))
    return width if column.most is None else max(min(width, column.most), _least(column, cells))


def _least(column: Column, cells: Sequence[str]) -> int:
    """The width in which nothing is broken but between words."""
    title, *values = cells
    parts = values if column.whole else [word for value in values for word in value.split()]
    return max((cell_len(part) for part in (*title.split(), *parts)), default=0)


def _shared(whole: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths of columns between the least and the whole ones; those that need little get it first."""
    widths, spare = list(least), room - sum(least)
    by_need = sorted(range(len(widths)), key=lambda place: whole[place] - least[place])
    for left, place in zip(range(len(widths), 0, -1), by_need, strict=True):
        extra = min(whole[place] - least[place], spare // left)
        widths[place] += extra
        spare -= extra
    return widths


def _table(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], styles: Sequence[str], widths: Sequence[int], gap: int
) -> Table:
    titled = any(column.title for column in columns)
    table = Table(box=None, show_header=titled, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            column.title, style=column.style, justify="right" if column.right else "left", width=width, overflow="fold"
        )
    for row, style in zip(rows, styles, strict=True):
        table.add_row(*row, style=style)
    return table


def _print_paragraph(screen: Console, columns: Sequence[Column], row: Sequence[Cell], style: str) -> None:
    """Prints the first cell as a heading, and below it what the others have, each behind its column's title."""
    first, *others = (_cell(cell) for cell in row)
    screen.print(Text(style="bold").append_text(first), style=style, soft_wrap=False)
    parts = [
        Text(f"{column.title} ", style="dim").append_text(cell) if column.title else cell
        for column, cell in zip(columns[1:], others, strict=True)
        if cell.plain.strip() not in ("", EMPTY_CELL)
    ]
    screen.print(Padding(Text(" · ", style="dim").join(parts), (0, 0, 0, 2), expand=False), style=style)


def _cell(cell: Cell) -> Text:
    return cell.copy() if isinstance(cell, Text) else Text(one_line(cell))


# Tables of experiments on the terminal.

PASSAGE_WIDTH = 40
"""Characters in a line of a long text, as far as there is room."""


def print_tables(sheets: Iterable[Sheet], screen: Console) -> None:
    """Prints the tables one below the other; where the output is no terminal, as wide as they are."""
    for text in sheets:
        screen.print()
        screen.print(heading(text.title), soft_wrap=True)
        _print_rows(text, screen)
        for note in text.notes:
            screen.print(Text(note, style="dim"), soft_wrap=not screen.is_terminal)


def _print_rows(text: Sheet, screen: Console) -> None:
    columns = [
        Column(title=title, right=numeric, whole=numeric, most=PASSAGE_WIDTH if long else None)
        for title, numeric, long in zip(text.headings, text.numeric, text.long, strict=True)
    ]
    rows = [(*row.cells, row.remark) if text.remarked else row.cells for row in text.rows]
    styles = ["bold" if row.chosen else "dim" if row.published else "" for row in text.rows]
    print_rows(screen, [*columns, Column()] if text.remarked else columns, rows, styles)
