"""`cotrail score` and `cotrail plan`: a run's scores, and what was planned of them."""

from collections.abc import Sequence
from typing import Annotated

from rich.console import Console

from cotrail.cli.request_options import Json, RunName, option
from cotrail.cli.terminal.output import console, grid, heading, in_json, print_rows, titled
from cotrail.cli.terminal.verdict_tables import print_judges, print_own_verdicts, print_repeats, print_scores
from cotrail.common.humanize import count, percent
from cotrail.core.history import shown_ends
from cotrail.core.money import spent_line
from cotrail.services.results import plans, scoring
from cotrail.services.results.plans import RunPlan, planned
from cotrail.services.results.scoring import (
    JudgedScores,
    KindTable,
    caveat_of,
    kind_tables,
    score_sentence,
    shown_bounds,
    until_line,
)


def score(run: RunName, *, every: Annotated[bool, option("score.all")] = False, json: Json = False) -> None:
    """Print a run's main scores with 95 % confidence intervals, in percent; --json has them as shares of 1.

    A question that isn't finished counts 0, so a run under way scores low; one that was cancelled, or left over by a
    budget, counts nowhere. Below them is what judges say of the run. A
    judge's own run has shares of verdicts in their place.
    """
    scores = scoring.show_scores(run)
    if in_json(scores, json=json):
        return
    screen = console()
    if scores.verdicts:
        screen.print(f"{scores.run}: {scores.finished:,} of {count(scores.questions, 'question')} finished")
        print_own_verdicts(screen, scores.verdicts)
        return
    _print(screen, scores, every=every)
    for line in plans.show_reporting(scores.run):
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
    columns = titled(table.sort, "questions", *table.metrics, right=("questions",))
    rows = []
    for row in table.rows:
        means = (
            f"{percent(mean)} ({shown_bounds(name, interval)})" if interval else percent(mean)
            for name, (mean, interval) in zip(table.metrics, row.means, strict=True)
        )
        rows.append([row.kind, f"{row.questions:,}", *means])
    print_rows(screen, columns, rows)


# `cotrail plan`: what was planned of a run before it began, and where the run departed from it.


def plan(run: RunName, *, json: Json = False) -> None:
    """Show a run's plan, sealed before its first step, and where the run departed from it.

    Its digest, published before results are known, shows later that they didn't decide what was asked and reported.
    """
    described = plans.show_plan(run)
    if in_json(described, json=json):
        return
    _print_plan(console(), described)


def _print_plan(screen: Console, described: RunPlan) -> None:
    screen.print(f"{described.run}: plan {described.digest or 'none'}", soft_wrap=True)
    table = grid("dim", "")
    for name, value in planned(described):
        table.add_row(name, value)
    screen.print(table)
    if described.plan is None:
        return
    for title, texts in (("Deviations", described.deviations or ("none",)), ("Remarks", described.remarks)):
        _print_list(screen, title, texts)


def _print_list(screen: Console, title: str, texts: Sequence[str]) -> None:
    if texts:
        screen.print()
        screen.print(heading(title))
    for text in texts:
        screen.print(f"  {text}", soft_wrap=True)
