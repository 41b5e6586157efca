"""`cotrail flower`: Flower in this process."""

import os
from typing import Annotated

import typer


def flower(
    *,
    address: Annotated[
        str,
        typer.Option(
            metavar="HOST", envvar="COTRAIL_FLOWER_ADDRESS", help="Where it listens; 0.0.0.0 is every interface."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", envvar="COTRAIL_FLOWER_PORT", min=1, max=65535, help="The port there.")
    ] = 5555,
    fd: Annotated[
        int | None,
        typer.Option(metavar="N", min=3, help="A socket that listens already, which this process was handed."),
    ] = None,
) -> None:
    """Run Flower in this process until it is stopped: a web page on what Celery's workers do.

    It asks for the user and the password in COTRAIL_FLOWER_USER and COTRAIL_FLOWER_PASSWORD; where there is none, it
    prints one. It only shows: nothing can be changed there. Workers tell it of tasks with --events.
    """
    from cotrail.cli.terminal.output import console
    from cotrail.configuration.settings import settings
    from cotrail.engines.optional_packages import check_package
    from cotrail.workers.monitoring import serve
    from cotrail.workers.stack.web import PASSWORD, access_on, handed, port_of

    check_package("flower", "monitoring")
    settings()  # what can't be used is refused before anything is said
    listener = None if fd is None else handed(fd)
    access = access_on(port if listener is None else port_of(listener))
    password = "" if os.environ.get(PASSWORD) else f", password {access.password}"
    console(stderr=True).print(f"Flower: http://{address}:{access.port}/ user {access.user}{password}", soft_wrap=True)
    serve(address, access, listener)
