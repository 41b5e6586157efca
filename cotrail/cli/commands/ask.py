"""`cotrail ask`: one question, answered while one watches."""

from functools import partial
from typing import Annotated, Any

import typer

from cotrail.cli.arguments import Json
from cotrail.cli.request_options import with_request_options
from cotrail.cli.terminal.answered import draw
from cotrail.cli.terminal.output import console, print_json
from cotrail.common.structs import assigned, nested
from cotrail.services.operations.operation import is_remote
from cotrail.services.results import asking
from cotrail.services.results.answering import Answer, End
from cotrail.services.runs.requests import OF_MANY, make_ask_request

UNANSWERED = 4
"""The exit code where the question has no answer."""


@partial(with_request_options, without=OF_MANY)
def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question, in one argument.")],
    *,
    options: dict[str, Any],
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A further setting of the system, by its dotted path (`cotrail systems NAME`). May be repeated.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Answer one question while you watch, ahead of all that is queued.

    Shows each search and each sentence as it is recorded, and on a terminal what is being written. Without --system,
    IRCoT answers; without --corpus, it searches the only one there is; without --model, the default of `cotrail models`
    writes. The question is a run like any other: `cotrail trace RUN 1` shows it again. Ctrl-C cancels it.

    Example: `cotrail ask "Which river flows through the town where Ada Lorn was born?" --corpus mine`
    """
    request = make_ask_request(
        {"question": question, **({"settings": nested(assigned(changes))} if changes else {}), **options},
        {key: f"--{key.replace('_', '-')}" for key in options},
    )
    if not is_remote():
        from cotrail.workers import celery_app  # noqa: F401 - messages go out through it

    status = ""
    with draw(console(stderr=json), silent=json) as show:
        for event in asking.ask(request):
            if event is None:
                continue
            show(event)
            match event:
                case Answer():
                    status = event.status
                case End() if json:
                    print_json(event.trace)
    raise typer.Exit(0 if status == "finished" else UNANSWERED)
