"""`cotrail score`: a run's scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.cli.terminal.output import console, print_json
from cotrail.cli.terminal.repeats import print_repeats
from cotrail.cli.terminal.score_table import print_scores, shown_range
from cotrail.cli.terminal.verdict_tables import print_judges, print_own_verdicts
from cotrail.common.humanize import count, number
from cotrail.core.ended_by import shown_ends
from cotrail.core.money import spent_line
from cotrail.errors import InputError
from cotrail.services.operations import plans
from cotrail.services.operations import scores as operations
from cotrail.services.views.judged_scores import JudgedScores
from cotrail.services.views.score_tables import (
    CAVEAT,
    SEQUENTIAL_CAVEAT,
    KindTable,
    kind_tables,
    until_line,
)


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

    A question that isn't finished counts 0, so a run under way scores low. Below them is what judges say of the run,
    and the scores of all its repeats together where it was submitted with --repeat; a judge's own run has shares of
    verdicts in their place.
    """
    if official and dataset is None:
        raise InputError("--official is a dataset's own file; say with --dataset which it is")
    scores = operations.show(run, dataset=dataset, official=official)
    if json:
        print_json(scores)
        return
    planned = plans.reporting(scores.run, dataset=dataset)
    screen = console()
    screen.print(f"{scores.run}: {scores.finished:,} of {count(scores.questions, 'question')} finished")
    if scores.until:
        screen.print(until_line(scores.until, scores.questions))
    if scores.verdicts:
        print_own_verdicts(screen, scores.verdicts)
    else:
        _print(screen, scores, planned)


def _print(screen: Console, scores: JudgedScores, planned: Sequence[str]) -> None:
    """Prints the metrics and what judges say, then the scores by repeats and by kinds of questions.

    planned: what is reported that the run's plan doesn't have.
    """
    print_scores(screen, scores)
    if scores.judges:
        screen.print()
        print_judges(screen, scores.judges)
        screen.print()
    if scores.ends:
        screen.print(f"ended by: {shown_ends(scores.ends)}")
    if scores.spent:
        screen.print(spent_line(scores.spent))
    for line in (SEQUENTIAL_CAVEAT if scores.until else CAVEAT, *planned):
        screen.print(line, style="dim")
    if scores.repeats:
        screen.print()
        print_repeats(screen, scores.repeats)
    for table in kind_tables(scores):
        screen.print()
        _print_kinds(screen, table)
        if table.note:
            screen.print(table.note, style="dim")


def _print_kinds(screen: Console, table: KindTable) -> None:
    columns = [Column(title=table.sort), Column(title="questions", right=True)]
    columns += [Column(title=name) for name in table.metrics]
    rows = []
    for row in table.rows:
        means = (f"{number(mean, 2)} {shown_range(interval, 2)}" for mean, interval in row.means)
        rows.append([row.kind, f"{row.questions:,}", *means])
    print_rows(screen, columns, rows)
