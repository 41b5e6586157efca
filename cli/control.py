"""`cotrail pause`, `resume` and `cancel`."""

from collections.abc import Callable

from sqlalchemy import Engine

from cli.output import Json, console, print_json
from cli.store import RunName, open_store
from models import control
from models.audit import resolve_run


def pause(run: RunName, *, json: Json = False) -> None:
    """Begin no further step of a run; what is under way is finished and recorded."""
    _do(control.pause, run, "paused. `cotrail resume {run}` goes on.", json=json)


def resume(run: RunName, *, json: Json = False) -> None:
    """Go on with a paused run, and try its blocked questions again."""
    _do(control.resume, run, "goes on. `cotrail watch {run}` shows it.", json=json)


def cancel(run: RunName, *, json: Json = False) -> None:
    """End a run for ever; what is recorded stays."""
    _do(control.cancel, run, "cancelled. What is recorded stays.", json=json)


def _do(verb: Callable[[Engine, str], None], given: str, said: str, *, json: bool) -> None:
    with open_store() as engine:
        with engine.connect() as connection:
            run = resolve_run(connection, given)
        verb(engine, run)
    if json:
        print_json({"run": run, "done": verb.__name__})
    else:
        console().print(f"{run}: {said.format(run=run)}", soft_wrap=True)
