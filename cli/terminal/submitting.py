"""What is said of a run as it is submitted."""

from typing import Any

from cotrail.cli.terminal.output import console
from cotrail.cli.terminal.run_text import print_namesakes
from cotrail.services.runs.prepared_run import PreparedRun
from cotrail.services.runs.submitted import Submitted
from cotrail.services.runs.waves import waves_in_words
from cotrail.services.runs.worker_keys import check_worker_keys


def print_warnings(submitted: Submitted) -> None:
    """Prints what runs lack or have another thing for, how long their batches may take, and who has their names."""
    _print(submitted.warnings, submitted.waves)
    for run in submitted.runs:
        print_namesakes(run.name, submitted.namesakes.get(run.run, ()))


def warn(prepared: PreparedRun) -> None:
    """The same of a run that isn't submitted yet."""
    warnings = (*prepared.warnings, *check_worker_keys(celery_app, prepared.submission.binding))
    _print(warnings, waves_in_words(prepared.submission) if prepared.submission.batched else None)


def _print(warnings: tuple[str, ...], waves: str | None) -> None:
    screen = console(stderr=True)
    for warning in warnings:
        screen.print(warning, style="yellow", soft_wrap=True)
    if waves:
        screen.print(waves, style="dim", soft_wrap=True)


def celery_app() -> Any:
    """The Celery app, by which workers are asked."""
    # Celery takes half a second to import.
    from cotrail.workers.celery_app import app

    return app
