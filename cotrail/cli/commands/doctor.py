"""`cotrail doctor`: whether this host, the servers and the workers are as they have to be."""

import typer

from cotrail.cli.arguments import Json

WRONG = 3
"""The exit code where something is wrong."""


def doctor(*, json: Json = False) -> None:
    """Look whether this host, PostgreSQL, Redis, the search server, models and workers are as they have to be.

    Each line says what was found and, where that isn't right, what to do. Nothing is changed. It takes a few seconds,
    longer where a server doesn't answer. Exits with 3 where something is wrong.
    """
    from cotrail.cli.terminal.diagnosis import print_diagnosis
    from cotrail.cli.terminal.output import print_json
    from cotrail.services import diagnosing
    from cotrail.workers.celery_app import app

    found = diagnosing.diagnose(lambda: app)
    if json:
        print_json(found)
    else:
        print_diagnosis(found)
    if found.wrong:
        raise typer.Exit(WRONG)
