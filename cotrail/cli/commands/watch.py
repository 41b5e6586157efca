"""`cotrail watch`: a run's progress while workers carry it out."""

import typer

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.terminal.following import follow
from cotrail.cli.terminal.run_text import summarize


def watch(run: RunName, *, json: Json = False) -> None:
    """Show a run's progress until it ends or can't continue by itself, and why. Ctrl-C ends only the watching.

    A paused run is waited for, until it is resumed. Exits with 4 if questions failed, are blocked or were cancelled.
    """
    raise typer.Exit(summarize(follow(run, stderr=json), json=json))
