"""`cotrail score`: a run's scores."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.cli.terminal.output import console, heading, print_json
from cotrail.cli.terminal.repeats import print_repeats
from cotrail.cli.terminal.score_table import print_scores
from cotrail.cli.terminal.verdict_tables import print_judges, print_own_verdicts
from cotrail.common.humanize import count, percent
from cotrail.core.history import shown_ends
from cotrail.core.money import spent_line
from cotrail.errors import InputError
from cotrail.services.results import plans, scoring
from cotrail.services.results.scoring import (
    JudgedScores,
    KindTable,
    caveat_of,
    kind_tables,
    score_sentence,
    shown_bounds,
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
    every: Annotated[
        bool,
        typer.Option("--all", help="Print every metric, the work, kinds of questions, and how intervals are made."),
    ] = False,
    json: Json = False,
) -> None:
    """Print a run's main scores with 95 % confidence intervals, in percent; --json has them as shares of 1.

    A question that isn't finished counts 0, so a run under way scores low; one that was cancelled, or left over by a
    budget, counts nowhere. Below them is what judges say of the run. A
    judge's own run has shares of verdicts in their place.
    """
    if official and dataset is None:
        raise InputError("--official is a dataset's own file; say with --dataset which it is")
    scores = scoring.show_scores(run, dataset=dataset, official=official)
    if json:
        print_json(scores)
        return
    screen = console()
    if scores.verdicts:
        screen.print(f"{scores.run}: {scores.finished:,} of {count(scores.questions, 'question')} finished")
        print_own_verdicts(screen, scores.verdicts)
        return
    _print(screen, scores, every=every)
    for line in plans.show_reporting(scores.run, dataset=dataset):
        screen.print(line, style="dim")
    if every:
        _print_further(screen, scores)
    else:
        screen.print("--all has every metric, kinds of questions, and how the intervals are made.", style="dim")


def _print(screen: Console, scores: JudgedScores, *, every: bool) -> None:
    """Prints the metrics, what judges say, what ended the questions, and the scores of all repeats together."""
    screen.print(heading(score_sentence(scores)), soft_wrap=not screen.is_terminal)
    if scores.until:
        screen.print(until_line(scores.until, scores.questions))
    print_scores(screen, scores, every=every)
    if scores.judges:
        screen.print()
        print_judges(screen, scores.judges)
        screen.print()
    if scores.ends:
        screen.print(f"ended by: {shown_ends(scores.ends)}")
    if scores.spent:
        screen.print(spent_line(scores.spent))
    if scores.repeats:
        screen.print()
        print_repeats(screen, scores.repeats)


def _print_further(screen: Console, scores: JudgedScores) -> None:
    """Prints what the intervals promise, and the scores by kinds of questions."""
    screen.print(caveat_of(scores), style="dim")
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
        means = (
            f"{percent(mean)} ({shown_bounds(name, interval)})" if interval else percent(mean)
            for name, (mean, interval) in zip(table.metrics, row.means, strict=True)
        )
        rows.append([row.kind, f"{row.questions:,}", *means])
    print_rows(screen, columns, rows)
