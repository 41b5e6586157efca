"""`cotrail score`: a run's scores."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from cli.arguments import Json, RunName
from cli.output import console, print_json
from cotrail.common.humanize import count, cut, number
from cotrail.errors import InputError
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval
from cotrail.evaluation.metrics.question_scores import CAVEAT, DEFINITIONS
from services import scoring
from services.kind_tables import KindTable, kind_tables
from services.scoring import RunScores
from services.store import reading

LONGEST_KIND = 18
"""Characters of a kind, and of what kinds are."""


def score(
    run: RunName,
    *,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            metavar="NAME",
            help="The dataset of the questions, for a run on processed files that was submitted as `ircot`.",
            show_default=False,
        ),
    ] = None,
    official: Annotated[
        Path | None,
        typer.Option(
            "--official", metavar="PATH", help="That dataset's own file, which has all answers.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Print a run's scores with 95 % confidence intervals, and the main ones for each kind of questions.

    A question that isn't finished counts 0, so a run under way scores low.
    """
    if official and dataset is None:
        raise InputError("--official is a dataset's own file; say with --dataset which it is")
    with reading() as connection:
        scores = scoring.score(connection, run, dataset=dataset, official=official)
    if json:
        print_json(scores)
        return
    screen = console()
    screen.print(f"{scores.run}: {scores.finished:,} of {count(scores.questions, 'question')} finished")
    screen.print(table_of(scores))
    screen.print(CAVEAT, style="dim")
    for table in kind_tables(scores):
        screen.print()
        screen.print(_by_kind(table))
        if table.note:
            screen.print(table.note, style="dim")


def table_of(scores: RunScores) -> Table:
    """The metrics, each with its interval and its definition."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(no_wrap=True)
    table.add_column("value", justify="right", style="bold", no_wrap=True)
    table.add_column("95 % interval", no_wrap=True)
    table.add_column(style="dim")
    for name, definition in DEFINITIONS.items():
        table.add_row(name, number(scores.metrics[name]), _range(scores.intervals[name], 3), definition)
    work = (
        ("steps", scores.steps, "steps carried out"),
        ("prompt_tokens", scores.prompt_tokens, "tokens in prompts"),
        ("cached_prompt_tokens", scores.cached_prompt_tokens, "those of them that were in the model's cache already"),
        ("generated_tokens", scores.generated_tokens, "tokens that the model wrote"),
    )
    for name, value, definition in work:
        table.add_row(name, f"{value:,}", "", definition)
    return table


def _by_kind(table: KindTable) -> Table:
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    drawn.add_column(cut(table.sort, LONGEST_KIND), no_wrap=True)
    drawn.add_column("questions", justify="right", no_wrap=True)
    for name in table.metrics:
        drawn.add_column(name, no_wrap=True)
    for row in table.rows:
        means = (f"{number(mean, 2)} {_range(interval, 2)}" for mean, interval in row.means)
        drawn.add_row(cut(row.kind, LONGEST_KIND), f"{row.questions:,}", *means)
    return drawn


def _range(interval: ConfidenceInterval | None, digits: int) -> str:
    return "" if interval is None else f"{interval.low:.{digits}f}-{interval.high:.{digits}f}"
