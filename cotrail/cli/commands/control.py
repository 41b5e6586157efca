"""`cotrail pause`, `resume`, `retry`, `prioritize`, `budget`, `cancel`, `watch` and `prune`."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer
from msgspec.structs import replace
from rich.progress import Progress, SpinnerColumn, TextColumn

from cotrail.cli.request_options import Json, RunName, argument, option
from cotrail.cli.terminal.following import follow
from cotrail.cli.terminal.output import console, in_json, print_json
from cotrail.cli.terminal.run_text import summarize
from cotrail.common.humanize import MOST_DAYS, count, size
from cotrail.errors import InputError
from cotrail.services.runs import control
from cotrail.services.runs.control import ControlledRun, PrioritizedRun, Pruned, RaisedRun, Report, RetriedRun, Weight

NONE_GOES_ON = "has this budget from now on. None of its ended questions goes on: it has room for none."


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
    paused = control.pause_run(run)
    _report(paused, f"paused. `cotrail resume {paused.run}` continues it.", json=json)


def resume(run: RunName, *, json: Json = False) -> None:
    """Continue a paused run, and try its blocked questions again.

    Where it is interrupted, doing it again completes it.
    """
    with _counting("tried again") as report:
        resumed = control.resume_run(run, report)
    _report(resumed, f"continues. `cotrail watch {resumed.run}` shows it.", json=json)


def retry(
    run: RunName,
    *,
    failed: Annotated[bool, option("retry.failed")] = False,
    blocked: Annotated[bool, option("retry.blocked")] = False,
    json: Json = False,
) -> None:
    """Try a run's failed and blocked questions again, from the step that they stopped at."""
    # Neither option means both, as both options do.
    both = failed == blocked
    with _counting("tried again") as report:
        retried = control.retry_run(run, failed=failed or both, blocked=blocked or both, report=report)
    if in_json(retried, json=json):
        return
    for line in _outcomes(retried):
        console().print(line, soft_wrap=True)


def prioritize(
    run: RunName, number: Annotated[int, argument("prioritize.number", callback=_check_priority)], *, json: Json = False
) -> None:
    """Have a run's questions begun before those of runs with a lower number."""
    prioritized = control.prioritize_run(run, number)
    _report(prioritized, f"has priority {number}.", json=json)


def budget(
    run: RunName,
    *,
    question_budget: Annotated[list[str] | None, option("budget.question-budget")] = None,
    run_budget: Annotated[list[str] | None, option("budget.run-budget")] = None,
    json: Json = False,
) -> None:
    """Give a run larger limits than it has; the questions that the former ones ended go on from where they were.

    Where it is interrupted, doing it again completes it.
    """
    from cotrail.cli.request_options import budget_in

    limits = budget_in("question_budget", question_budget or ()), budget_in("run_budget", run_budget or ())
    with _counting("opened again") as report:
        raised = control.raise_run_budget(run, question_budget=limits[0], run_budget=limits[1], report=report)
    going = f"{count(raised.questions, 'question')} {'goes' if raised.questions == 1 else 'go'} on"
    text = f"{going}. `cotrail watch {raised.run}` shows it." if raised.questions else NONE_GOES_ON
    _report(raised, text, json=json)


def cancel(run: RunName, *, json: Json = False) -> None:
    """End a run permanently; its record stays.

    Where it is interrupted, doing it again or the maintenance process completes it.
    """
    with _counting("cancelled") as report:
        cancelled = control.cancel_run(run, report)
    _report(cancelled, "cancelled. What is recorded stays.", json=json)


@contextmanager
def _working() -> Iterator[Callable[[str], None]]:
    """Shows on a terminal how far the work is, as large runs take long; takes that in words."""
    columns = SpinnerColumn(), TextColumn("{task.description}")
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        bar = progress.add_task("")
        yield lambda said: progress.update(bar, description=said)


@contextmanager
def _counting(done: str) -> Iterator[Report]:
    with _working() as say:
        yield lambda number: say(f"{count(number, 'question')} {done}")


def _report(done: ControlledRun | PrioritizedRun | RaisedRun, text: str, *, json: bool) -> None:
    if not in_json(done, json=json):
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


def prune_runs(
    runs: Annotated[list[str] | None, argument("prune.runs")] = None,
    *,
    older_than: Annotated[float | None, option("prune.older-than", max=MOST_DAYS)] = None,
    dry_run: Annotated[bool, option("prune.dry-run")] = False,
    yes: Annotated[bool, option("prune.yes")] = False,
    json: Json = False,
) -> None:
    """Remove runs permanently: their questions, steps and attempts, and paragraphs that no other run refers to.

    A run that hasn't ended is cancelled first: `cotrail cancel RUN`. Steps that another run adopted stay with that run.
    Where it is interrupted, the next `cotrail prune` completes it.
    """
    pruned = control.choose_runs(runs or (), older_than)
    if not dry_run and pruned.runs and not yes:
        if not sys.stdin.isatty():
            raise InputError(f"{_described(pruned.weight)} would be removed permanently; confirm with --yes")
        typer.confirm(f"Remove {_described(pruned.weight)} permanently?", abort=True)
    if not dry_run:
        pruned = replace(pruned, removed=_prune(pruned.runs))
    removed = pruned.removed
    if json:
        print_json(pruned)
    elif removed is None:
        console().print(f"{_described(pruned.weight)} would go.", *pruned.runs, sep="\n")
    else:
        shared = (
            f"{count(removed.paragraphs, 'paragraph')} and {count(removed.demonstrations, 'set')} of demonstrations"
        )
        console().print(f"Removed {_described(pruned.weight)}; with them went {shared} that nothing else refers to.")


def _prune(runs: Sequence[str]) -> Pruned:
    with _working() as say:
        return control.prune_runs(
            runs,
            lambda pruned: say(
                f"{count(pruned.questions, 'question')} and {count(pruned.paragraphs, 'paragraph')} removed"
            ),
        )


def _described(weight: Weight) -> str:
    return f"{count(weight.runs, 'run')} with {count(weight.steps, 'step')} ({size(weight.bytes)})"


def watch(run: RunName, *, json: Json = False) -> None:
    """Show a run's progress until it ends or can't continue by itself, and why. Ctrl-C ends only the watching.

    A paused run is waited for, until it is resumed. Exits with 4 if questions failed, are blocked or were cancelled.
    """
    raise typer.Exit(summarize(follow(run, stderr=json), json=json))
