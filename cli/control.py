"""`cotrail pause`, `resume`, `retry`, `prioritize` and `cancel`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import msgspec
import typer
from rich.progress import Progress, SpinnerColumn, TextColumn
from sqlalchemy import Engine

from cli.output import Json, console, count, print_json
from cli.request import MAX_PRIORITY
from cli.store import RunName, open_store
from cotrail.systems.registry import find_system
from models.commands import control, retrying
from models.commands.chunks import OnProgress
from models.commands.retrying import Retried
from models.queries.runs import resolve_run


def pause(run: RunName, *, json: Json = False) -> None:
    """Begin no further step of a run; what is under way is finished and recorded."""
    with open_store() as engine:
        name = _resolve(engine, run)
        control.pause(engine, name)
    _say("pause", f"{name}: paused. `cotrail resume {name}` goes on.", name, json=json)


def resume(run: RunName, *, json: Json = False) -> None:
    """Go on with a paused run, and try its blocked questions again.

    Broken off, it is gone on with by doing it again.
    """
    with open_store() as engine:
        name = _resolve(engine, run)
        with _counting("tried again") as told:
            control.resume(engine, name, find_system, told)
    _say("resume", f"{name}: goes on. `cotrail watch {name}` shows it.", name, json=json)


def retry(
    run: RunName,
    *,
    failed: Annotated[bool, typer.Option("--failed", help="Only questions that failed.")] = False,
    blocked: Annotated[bool, typer.Option("--blocked", help="Only questions that are blocked.")] = False,
    json: Json = False,
) -> None:
    """Try a run's failed and blocked questions again, from the step that they stopped at."""
    both = failed == blocked
    with open_store() as engine:
        name = _resolve(engine, run)
        with _counting("tried again") as told:
            retried = retrying.retry(
                engine, name, find_system, failed=failed or both, blocked=blocked or both, report=told
            )
    if json:
        print_json({"run": name, **msgspec.structs.asdict(retried)})
        return
    for line in _retried(name, retried):
        console().print(line, soft_wrap=True)


def prioritize(
    run: RunName,
    number: Annotated[
        int,
        typer.Argument(
            metavar="NUMBER",
            help="Any whole number; runs have 0 unless told otherwise.",
            min=-MAX_PRIORITY,
            max=MAX_PRIORITY,
            show_default=False,
        ),
    ],
    *,
    json: Json = False,
) -> None:
    """Have a run's questions begun before those of runs with a lower number."""
    with open_store() as engine:
        name = _resolve(engine, run)
        control.prioritize(engine, name, number)
    if json:
        print_json({"run": name, "priority": number})
    else:
        console().print(f"{name}: has priority {number}.", soft_wrap=True)


def cancel(run: RunName, *, json: Json = False) -> None:
    """End a run for ever; what is recorded stays.

    Broken off, it is gone on with by doing it again, and by the maintenance process.
    """
    with open_store() as engine:
        name = _resolve(engine, run)
        with _counting("cancelled") as told:
            control.cancel(engine, name, told)
    _say("cancel", f"{name}: cancelled. What is recorded stays.", name, json=json)


@contextmanager
def _counting(done: str) -> Iterator[OnProgress]:
    """Shows on a terminal how many questions are done, as that may take long."""
    columns = SpinnerColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        shown = progress.add_task("")
        yield lambda number: progress.update(shown, description=f"{count(number, 'question')} {done}")


def _say(verb: str, said: str, run: str, *, json: bool) -> None:
    if json:
        print_json({"run": run, "done": verb})
    else:
        console().print(said, soft_wrap=True)


def _resolve(engine: Engine, given: str) -> str:
    with engine.connect() as connection:
        return resolve_run(connection, given)


def _retried(run: str, retried: Retried) -> list[str]:
    """What became of the questions, a line for each sort."""
    lines = [
        f"{run}: {count(number, f'{sort} question')} tried again."
        for sort, number in (("failed", retried.failed), ("blocked", retried.blocked))
        if number
    ]
    if lines:
        lines.append(f"`cotrail watch {run}` shows it.")
    if retried.stuck:
        lines.append(
            f"{run}: {count(retried.stuck, 'failed question')} can't be tried again: no step of theirs failed. "
            "`cotrail submit` asks them anew."
        )
    return lines or [f"{run}: no question to try again."]
