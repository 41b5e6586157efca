"""Words and numbers for a run's progress: how it ended, and what holds it back."""

from collections.abc import Sequence

from rich.console import Console

from cotrail.cli.terminal.output import console, heading, print_json
from cotrail.common.humanize import count, duration
from cotrail.core.ended_by import LIMIT, UNTIL, shown_ends
from cotrail.core.money import shown_dollars
from cotrail.services.operations import progress as operations
from cotrail.services.runs.run_progress import Cause, RunProgress
from cotrail.services.runs.run_speed import blockage_line

INCOMPLETE = 4
"""The exit code where questions ended without an answer."""


def summarize(progress: RunProgress, *, json: bool) -> int:
    """Prints a run's outcome and returns the exit code."""
    if json:
        print_json(progress)
    else:
        reasons = operations.reasons(progress.run)
        screen = console()
        screen.print(closing_line(progress), soft_wrap=True)
        print_reasons(screen, reasons)
        if progress.blockage:
            screen.print(blockage_line(progress.run, progress.blockage), soft_wrap=True)
        elif progress.blocked:
            screen.print(f"Once that is fixed, `cotrail resume {progress.run}` continues.", soft_wrap=True)
    return 0 if progress.complete else INCOMPLETE


def closing_line(progress: RunProgress) -> str:
    """e.g. `r-1: 20 of 20 questions finished, 2 failed; 310 steps in 4 min 10 s.`."""
    others = [f"{number:,} {status}" for status, number in progress.statuses.items() if status != "finished"]
    finished = f"{progress.finished:,} of {count(progress.questions, 'question')} finished"
    work = f"{count(progress.steps, 'step')} in {duration(progress.seconds)}"
    limited = {end: number for end, number in progress.ends.items() if end.startswith((LIMIT, UNTIL))}
    ends = f"; {shown_ends(limited)}" if limited else ""
    money = f"; {shown_dollars(progress.spent)}" if progress.spent else ""
    return f"{progress.run}: {', '.join([finished, *others])}; {work}{ends}{money}."


def print_reasons(screen: Console, reasons: Sequence[Cause]) -> None:
    """Prints the reasons why questions have no answer, a paragraph each."""
    for reason in reasons:
        screen.print()
        screen.print(heading(f"{count(reason.questions, 'question')} {reason.status}: {reason.type}"))
        screen.print(reason.message)
        more = ", …" if reason.questions > len(reason.examples) else ""
        screen.print(f"{', '.join(reason.examples)}{more}", style="dim")
