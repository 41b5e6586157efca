"""Words and numbers for a run's progress: how it ended, and what holds it back."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from cotrail.cli.terminal.output import Column, console, heading, in_json, print_rows
from cotrail.common.humanize import count, duration
from cotrail.common.printable_text import cut
from cotrail.core.budgets import RUN
from cotrail.core.history import LIMIT, UNTIL, shown_ends
from cotrail.core.money import dollars, shown_dollars
from cotrail.services.results.runs import RunDetails
from cotrail.services.runs import watching
from cotrail.services.runs.progress import RunProgress, RunState, StopCause
from cotrail.services.runs.speed import blockage_line
from cotrail.services.runs.submission import Estimate, EstimatedWork, Submitted

STYLES = {
    RunState.RUNNING: "cyan",
    RunState.PAUSED: "yellow",
    RunState.BLOCKED: "bold red",
    RunState.FINISHED: "green",
    RunState.CANCELLED: "dim",
    RunState.PRUNED: "dim",
}
"""The colours of runs' states on a terminal."""


def shown_state(state: RunState) -> Text:
    """A run's state in its colour."""
    return Text(state, style=STYLES[state])


def print_namesakes(name: str | None, others: Sequence[str]) -> None:
    """Says where a name that a run has just got no longer finds one run; others: the other runs that have it."""
    if others:
        message = f"{count(len(others), 'other run')} named {name!r} ({cut(', '.join(others), 100)}): give ids instead"
        console(stderr=True).print(message, style="yellow", soft_wrap=True)


INCOMPLETE = 4
"""The exit code where questions ended without an answer."""


def summarize(progress: RunProgress, *, json: bool) -> int:
    """Prints a run's outcome and returns the exit code."""
    if not in_json(progress, json=json):
        reasons = watching.list_reasons(progress.run)
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
    money = f"; {spent}" if (spent := shown_dollars(progress.spent)) else ""
    return f"{progress.run}: {', '.join([finished, *others])}; {work}{ends}{money}."


def stuck_line(run: RunDetails) -> str:
    """Why not every question of an experiment's run was asked, and what to do about it."""
    used_up = [end.removeprefix(LIMIT + RUN) for end in run.ends if end.startswith(LIMIT + RUN)]
    if used_up and run.cancelled and not run.blocked:
        more = f"cotrail budget {run.run} --run-budget {used_up[0]}=N"
        return f"{run.run} used up its budget, {count(run.cancelled, 'question')} never began; to go on: {more}"
    if run.cancelled and not run.blocked:
        ended = next(
            (f"stopped by {end.removeprefix(UNTIL)}" for end in run.ends if end.startswith(UNTIL)), "cancelled"
        )
        return f"{run.run} was {ended}: {count(run.cancelled, 'question')} never asked"
    return f"{run.run} can't continue; once this is fixed: cotrail resume {run.run}"


def print_reasons(screen: Console, reasons: Sequence[StopCause]) -> None:
    """Prints the reasons why questions have no answer, a paragraph each."""
    for reason in reasons:
        screen.print()
        screen.print(heading(f"{count(reason.questions, 'question')} {reason.status}: {reason.type}"))
        screen.print(reason.message)
        more = ", …" if reason.questions > len(reason.examples) else ""
        screen.print(f"{', '.join(reason.examples)}{more}", style="dim")


def print_warnings(submitted: Submitted) -> None:
    """Prints what runs lack or have another thing for, how long their batches may take, and who has their names."""
    screen = console(stderr=True)
    if submitted.reading:
        screen.print(submitted.reading, style="dim", soft_wrap=True)
    for warning in submitted.warnings:
        screen.print(warning, style="yellow", soft_wrap=True)
    if submitted.waves:
        screen.print(submitted.waves, style="dim", soft_wrap=True)
    for run in submitted.runs:
        print_namesakes(run.name, submitted.namesakes.get(run.run, ()))


def celery_app() -> Any:
    """The Celery app, by which workers are asked."""
    # Celery takes half a second to import.
    from cotrail.workers.celery_app import app

    return app


def print_estimate(estimate: Estimate, *, json: bool) -> None:
    """Prints what a run may take and cost."""
    if in_json(estimate, json=json):
        return
    screen = console()
    asked = f"{count(estimate.questions, 'question')} of {estimate.dataset}"
    screen.print(f"{estimate.system} on {asked} with {estimate.model}", soft_wrap=True)
    named = {"at most": estimate.most, "by earlier runs": estimate.expected}
    if rows := [_row(name, work) for name, work in named.items() if work]:
        titles = [title for title in rows[0] if any(row[title] for row in rows)]
        columns = [Column(title=title, right=title != "estimate", whole=True) for title in titles]
        print_rows(screen, columns, [[row[title] for title in titles] for row in rows])
    for note in _notes(estimate):
        screen.print(note, style="dim", soft_wrap=True)


def _row(name: str, work: EstimatedWork) -> dict[str, str]:
    return {
        "estimate": name,
        "steps": f"{work.steps:,}",
        "model calls": f"{work.usage.calls:,}",
        "tokens read": f"{work.usage.input_tokens:,}",
        "written": f"{work.usage.output_tokens:,}",
        "cost": "" if work.dollars is None else dollars(work.dollars),
        "in batches": "" if work.batch_dollars is None else dollars(work.batch_dollars),
    }


def _notes(estimate: Estimate) -> Iterator[str]:
    if estimate.most is None:
        yield f"The settings of {estimate.system} set no limit to its steps."
    if measured := estimate.measured:
        whose = f" with {measured.model}" if measured.model else ", of any model"
        yield f"By {count(measured.questions, 'finished question')} of {count(measured.runs, 'earlier run')}{whose}."
    else:
        yield f"No earlier run of {estimate.system} on {estimate.dataset} has ended, so that nothing is measured."
    if estimate.price == "unknown":
        yield f"The price of {estimate.model} isn't known: give its table in models.toml a `price`."
    elif estimate.price:
        yield f"Prices: {estimate.price}."
    yield "Nothing was submitted."
