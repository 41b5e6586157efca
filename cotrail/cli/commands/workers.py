"""`cotrail workers`: who is there on all hosts, and what each is doing."""

import typer

from cotrail.cli.arguments import Json

REDIS_UNAVAILABLE = 3
"""The exit code where Redis doesn't answer, so that not all were found."""


def workers(*, json: Json = False) -> None:
    """List the workers of all hosts, and what each is doing; maintenance processes too.

    Workers are asked over Redis, and what they hold is read from the database. One that holds steps and doesn't answer
    is silent: frozen, cut off, or ended a moment ago. Exits with 3 where Redis doesn't answer: idle ones aren't found.
    """
    from cotrail.cli.terminal.diagnosis import print_workers
    from cotrail.cli.terminal.output import print_json
    from cotrail.services.runs import workers as operations
    from cotrail.workers.celery_app import app

    listing = operations.show_workers(lambda: app)
    if json:
        print_json(listing)
    else:
        print_workers(listing)
    if listing.unasked is not None:
        raise typer.Exit(REDIS_UNAVAILABLE)
