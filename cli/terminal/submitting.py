"""What is said of a run as it is submitted."""

from typing import Any

from cotrail.cli.terminal.namesakes import print_namesakes
from cotrail.cli.terminal.output import console
from cotrail.services.runs.submitted import Submitted


def print_warnings(submitted: Submitted) -> None:
    """Prints what runs lack or have another thing for, how long their batches may take, and who has their names."""
    screen = console(stderr=True)
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
