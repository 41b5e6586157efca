"""What is said before a run is submitted."""

from typing import Any

from cotrail.cli.terminal.output import console
from cotrail.common.humanize import count
from cotrail.services.runs.prepared_run import PreparedRun
from cotrail.services.runs.waves import waves_in_words
from cotrail.services.runs.worker_keys import check_worker_keys


def warn(prepared: PreparedRun) -> None:
    """Prints what a run lacks or has another thing for, and how long its batches may take."""
    screen = console(stderr=True)
    for warning in (*_warnings(prepared), *check_worker_keys(_app, prepared.submission.binding)):
        screen.print(warning, style="yellow", soft_wrap=True)
    if prepared.submission.batched:
        screen.print(waves_in_words(prepared), style="dim", soft_wrap=True)


def _warnings(prepared: PreparedRun) -> list[str]:
    if not prepared.missing_gold:
        return list(prepared.notes)
    missing = (
        f"{count(prepared.missing_gold, 'gold paragraph')} of these questions not in the corpus "
        f"{' or '.join(prepared.submission.binding.corpora)}: paragraph recall can't reach 1. "
        "`cotrail data build` makes a corpus that has them."
    )
    return [missing, *prepared.notes]


def _app() -> Any:
    # Celery takes half a second to import.
    from cotrail.workers.celery_app import app

    return app
