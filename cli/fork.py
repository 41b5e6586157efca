"""`cotrail fork`: a new run from what another one has recorded."""

from typing import Annotated

import typer

from cli.output import Json, console, print_json
from cli.store import RunName, open_store
from cli.watch import follow, summarize
from cotrail.common.humanize import count
from cotrail.core.fork_points import read_point
from models.commands.forking import fork as record
from models.queries.progress import read_run, resolve_run
from models.records.runs import Runs
from services.forking import prepare_fork, read_changes


def fork(
    run: RunName,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="STEP",
            help="Take over the steps before this one, whatever the new settings would have asked for: a step's number "
            "in `cotrail trace`, a negative one counted from the end, or a kind of step, whose first is meant. Without "
            "it, all steps that the new settings would have asked for just so.",
            show_default=False,
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the system, by its dotted path or the last part of it, or model, profile, seed, "
            "temperature, embedder, entailer. May be given several times.",
            show_default=False,
        ),
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--question", metavar="ID", help="Only this question. May be given several times.", show_default=False
        ),
    ] = None,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress until the run is done.")] = False,
    json: Json = False,
) -> None:
    """Start a new run that takes over recorded steps of another one and computes only what follows.

    Example: `cotrail fork latest --at read --set reader=cot --wait`
    """
    point = None if at is None else read_point(at)
    with open_store() as engine:
        with engine.connect() as connection:
            origin = read_run(connection, resolve_run(connection, run))
            shots = Runs().plan(connection, origin.id).shots
        submission = prepare_fork(origin, shots, read_changes(origin, changes or ()), point)
        forked = record(engine, submission, point, keys or ())
        if wait and not json:
            console().print(_said(submission.id, origin.id, forked.questions, forked.adopted), soft_wrap=True)
        if wait:
            raise typer.Exit(summarize(engine, follow(engine, submission.id, stderr=json), json=json))
    if json:
        print_json(
            {"run": submission.id, "origin": origin.id, "questions": forked.questions, "adopted": forked.adopted}
        )
        return
    typer.echo(submission.id)
    said = _said(submission.id, origin.id, forked.questions, forked.adopted)
    console(stderr=True).print(f"{said} `cotrail watch {submission.id}` shows progress.", style="dim", soft_wrap=True)


def _said(run: str, origin: str, questions: int, adopted: int) -> str:
    return f"{run} has {count(questions, 'question')} of {origin} and {count(adopted, 'step')} of theirs."
