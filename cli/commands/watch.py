"""`cotrail watch`: a run's progress while workers carry it out."""

import typer

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.terminal.following import follow
from cotrail.cli.terminal.run_text import summarize
from cotrail.services.runs.named_runs import resolve_run
from cotrail.services.store import open_store


def watch(run: RunName, *, json: Json = False) -> None:
    """Show a run's progress until it ends or can't continue by itself, and why. Ctrl-C ends only the watching.

    A paused run is waited for, until it is resumed. Exits with 4 if questions failed, are blocked or were cancelled.
    """
    with open_store() as engine:
        with engine.connect() as connection:
            run_id = resolve_run(connection, run)
        progress = follow(engine, run_id, stderr=json)
        raise typer.Exit(summarize(engine, progress, json=json))
