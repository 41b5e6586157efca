"""`cotrail label`: a run's name and tags."""

from typing import Annotated

import typer

from cotrail.cli.arguments import Json, RunName, Tags
from cotrail.cli.terminal.output import console, print_json
from cotrail.cli.terminal.run_text import print_namesakes
from cotrail.services.runs import labels


def label(
    run: RunName,
    *,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help='Its name; "" takes it away.', show_default=False)
    ] = None,
    tags: Tags = None,
    untag: Annotated[
        list[str] | None,
        typer.Option("--untag", metavar="TAG", help="Take this tag away. May be repeated.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Name and tag a run, or print its name and tags. No digest covers them: they may change at any time.

    Example: `cotrail label latest --name baseline --tag table-2`
    """
    labelled = labels.label_run(run, name=name, add=tags or (), remove=untag or ())
    if name:
        print_namesakes(name, labels.list_namesakes(labelled.run))
    if json:
        print_json(labelled)
        return
    marks = [labelled.name or "no name", *(f"#{tag}" for tag in labelled.tags)]
    console().print(f"{labelled.run}: {', '.join(marks)}", soft_wrap=True)
