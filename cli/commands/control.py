"""`cotrail pause`, `resume`, `retry`, `prioritize` and `cancel`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.terminal.output import console, print_json
from cotrail.common.humanize import count
from cotrail.services.operations import runs
from cotrail.services.runs.control import ControlledRun, PrioritizedRun, Report, RetriedRun


def _check_priority(number: int) -> int:
    from cotrail.errors import InputError
    from cotrail.services.runs.requests import MAX_PRIORITY

    if abs(number) > MAX_PRIORITY:
        raise InputError(
            f"a priority of {number:,} can't be stored; take one from {-MAX_PRIORITY:,} to {MAX_PRIORITY:,}"
        )
    return number


def pause(run: RunName, *, json: Json = False) -> None:
    """Pause a run: no further step begins; steps under way finish and are recorded."""
    paused = runs.pause(run)
    _report(paused, f"paused. `cotrail resume {paused.run}` continues it.", json=json)


def resume(run: RunName, *, json: Json = False) -> None:
    """Continue a paused run, and try its blocked questions again.

    Where it is interrupted, doing it again completes it.
    """
    with _counting("tried again") as report:
        resumed = runs.resume(run, report)
    _report(resumed, f"continues. `cotrail watch {resumed.run}` shows it.", json=json)


def retry(
    run: RunName,
    *,
    failed: Annotated[bool, typer.Option("--failed", help="Only questions that failed.")] = False,
    blocked: Annotated[bool, typer.Option("--blocked", help="Only questions that are blocked.")] = False,
    json: Json = False,
) -> None:
    """Try a run's failed and blocked questions again, from the step that they stopped at."""
    # Neither option means both, as both options do.
    both = failed == blocked
    with _counting("tried again") as report:
        retried = runs.retry(run, failed=failed or both, blocked=blocked or both, report=report)
    if json:
        print_json(retried)
        return
    for line in _outcomes(retried):
        console().print(line, soft_wrap=True)


def prioritize(
    run: RunName,
    number: Annotated[
        int,
        typer.Argument(
            metavar="NUMBER",
            help="Any whole number; runs have 0 by default.",
            callback=_check_priority,
            show_default=False,
        ),
    ],
    *,
    json: Json = False,
) -> None:
    """Have a run's questions begun before those of runs with a lower number."""
    prioritized = runs.prioritize(run, number)
    _report(prioritized, f"has priority {number}.", json=json)


def cancel(run: RunName, *, json: Json = False) -> None:
    """End a run permanently; its record stays.

    Where it is interrupted, doing it again or the maintenance process completes it.
    """
    with _counting("cancelled") as report:
        cancelled = runs.cancel(run, report)
    _report(cancelled, "cancelled. What is recorded stays.", json=json)


@contextmanager
def _counting(done: str) -> Iterator[Report]:
    """Shows on a terminal how many questions are done, as large runs take long."""
    columns = SpinnerColumn(), TextColumn("{task.description}")
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        bar = progress.add_task("")
        yield lambda number: progress.update(bar, description=f"{count(number, 'question')} {done}")


def _report(done: ControlledRun | PrioritizedRun, text: str, *, json: bool) -> None:
    if json:
        print_json(done)
    else:
        console().print(f"{done.run}: {text}", soft_wrap=True)


def _outcomes(retried: RetriedRun) -> list[str]:
    """A line for each sort of questions."""
    run = retried.run
    lines = [
        f"{run}: {count(number, f'{sort} question')} tried again."
        for sort, number in (("failed", retried.failed), ("blocked", retried.blocked))
        if number
    ]
    if lines:
        lines.append(f"`cotrail watch {run}` shows it.")
    if retried.stuck:
        lines.append(
            f"{run}: {count(retried.stuck, 'failed question')} can't be tried again, as no step failed there. "
            "`cotrail submit` asks again in a new run."
        )
    return lines or [f"{run}: no question to try again."]
