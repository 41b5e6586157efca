"""`cotrail view`: a page of the viewer, in the browser."""

import webbrowser
from typing import Annotated

import typer

from cotrail.cli.terminal.local_stack import start, startable_stack
from cotrail.cli.terminal.output import console
from cotrail.services.operations.operation import server_address
from cotrail.services.runs import labels
from cotrail.viewer.links import link


def view(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN", help="The run's id, the beginning of it, its name, or `latest`.", show_default=False
        ),
    ] = None,
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="QUESTION", help="The question's id, or its number in the run, from 1.", show_default=False
        ),
    ] = None,
) -> None:
    """Open the viewer in the browser: the list of runs, a run, or a question of it.

    Prints the page's address too. The local stack is started where its service doesn't run.

    Example: `cotrail view latest 1`
    """
    service = server_address() or _started()
    address = service + _page(run, question)
    console().print(address, soft_wrap=True)
    webbrowser.open(address)


def _page(run: str | None, question: str | None) -> str:
    if run is None:
        return link()
    found = labels.identify(run).run
    return link("runs", found) if question is None else link("runs", found, "questions", question)


def _started() -> str:
    """The address of the local stack's service, which runs then."""
    stack = startable_stack()
    if stack.find("api") is None:
        screen = console(stderr=True)
        start(stack, screen)
        screen.print("The local stack is started; `cotrail down` stops it.", soft_wrap=True)
    return stack.kept_address().url
