"""Tables of experiments on the terminal."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.cli.terminal.output import heading
from cotrail.services.views.reports.sheets import Sheet

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
