"""Tables of experiments on the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from cli.output import heading
from cotrail.evaluation.experiments.report_tables import ReportTable
from services.reports.sheets import Sheet, sheet

PASSAGE_WIDTH = 40
"""Characters in a line of a long text, as far as there is room."""


def print_tables(tables: Sequence[ReportTable], screen: Console) -> None:
    """Prints the tables one below the other; where the output is no terminal, as wide as they are."""
    for table in tables:
        text = sheet(table)
        drawn = _drawn(text)
        # Another program or a file gets whole lines; on a terminal long cells wrap.
        if not screen.is_terminal:
            wide = screen.options.update(max_width=10_000)
            screen.width = max(screen.width, Measurement.get(screen, wide, drawn).maximum)
        screen.print()
        screen.print(heading(text.title), soft_wrap=True)
        screen.print(drawn)
        for note in text.notes:
            screen.print(Text(note, style="dim"), soft_wrap=not screen.is_terminal)


def _drawn(text: Sheet) -> RichTable:
    drawn = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title, numeric, long in zip(text.headings, text.numeric, text.long, strict=True):
        width = PASSAGE_WIDTH if long else None
        drawn.add_column(
            title, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold", max_width=width
        )
    if text.remarked:
        drawn.add_column("", overflow="fold")
    for row in text.rows:
        cells = (*row.cells, row.remark) if text.remarked else row.cells
        drawn.add_row(*cells, style="bold" if row.chosen else "dim" if row.published else "")
    return drawn
