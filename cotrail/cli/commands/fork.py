"""`cotrail fork`: a new run from what another one has recorded."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from cotrail.cli.arguments import Json, RunName, Tags
from cotrail.cli.terminal.following import follow
from cotrail.cli.terminal.output import console, print_json
from cotrail.cli.terminal.run_text import print_namesakes, summarize
from cotrail.common.humanize import count
from cotrail.common.structs import assigned
from cotrail.core.edits import Edit, read_point
from cotrail.core.ports.roles import ROLES
from cotrail.services.runs import forking, labels
from cotrail.services.runs.forking import ENGINE, ForkedRun, ForkRequest


def fork(
    run: RunName,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="STEP",
            help="Take over the steps before this one, whatever the new settings would have asked for: a step's number "
            "in `cotrail trace`, a negative one counted from the end, or a kind of step, whose first is meant. Without "
            "it, all steps that the new settings would have asked for in the same way.",
            show_default=False,
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the system, by its dotted path or the last part of it, or model, profile, seed, "
            "temperature. May be given several times.",
            show_default=False,
        ),
    ] = None,
    engines: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            metavar="ROLE=NAME",
            help=f"The engine of a role: {', '.join(ROLES)}, or another of the system's. May be given several times.",
            show_default=False,
        ),
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--question", metavar="ID", help="Only this question. May be given several times.", show_default=False
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            metavar="TEXT",
            help="Search for this at the step `--at` of the one `--question`, instead of what the system asks for.",
            show_default=False,
        ),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt",
            metavar="TEXT",
            help="Show this to the model at that step, instead of its prompt: `cotrail audit prompt` prints one.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            "--text",
            metavar="TEXT",
            help="Take this for what the model wrote at that step, without asking it.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="A name for the new run.", show_default=False)
    ] = None,
    tags: Tags = None,
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan",
            metavar="PATH",
            help="What is stated of its evaluation beforehand, a TOML file.",
            show_default=False,
        ),
    ] = None,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress until the run is done.")] = False,
    json: Json = False,
) -> None:
    """Start a new run that takes over recorded steps of another one and computes only what follows.

    With `--query`, `--prompt` or `--text`, one step of one question is edited, and the system goes on from there.

    Example: `cotrail fork latest --at read --set reader=cot --wait`
    """
    request = ForkRequest(
        run=run,
        changes=parse_changes([*(changes or ()), *(f"{ENGINE}{each}" for each in engines or ())]),
        at=None if at is None else read_point(at),
        questions=tuple(keys or ()),
        name=name,
        tags=tuple(tags or ()),
        plan=plan,
        edit=None if (text, query, prompt) == (None, None, None) else Edit(text=text, query=query, prompt=prompt),
    )
    forked = forking.fork_run(request)
    if name:
        print_namesakes(name, labels.list_namesakes(forked.run))
    if wait and not json:
        console().print(_summary(forked), soft_wrap=True)
        console().print(f"plan {forked.plan}", soft_wrap=True)
    if wait:
        raise typer.Exit(summarize(follow(forked.run, stderr=json), json=json))
    if json:
        print_json(forked)
        return
    typer.echo(forked.run)
    hint = f"{_summary(forked)} `cotrail watch {forked.run}` shows progress."
    console(stderr=True).print(hint, style="dim", soft_wrap=True)
    console(stderr=True).print(f"plan {forked.plan}", style="dim", soft_wrap=True)


TEXTS = ("model", "profile")
"""Keys whose values are names, beside the roles of engines."""


def parse_changes(changes: Iterable[str]) -> dict[str, Any]:
    """Changes from `KEY=VALUE`."""
    # A name may look like a number: the model `135` is no integer.
    changes = tuple(changes)
    keys = {each.partition("=")[0] for each in changes}
    return assigned(changes, texts={key for key in keys if key in TEXTS or key in ROLES or key.startswith(ENGINE)})


def _summary(forked: ForkedRun) -> str:
    took = f"{count(forked.adopted, 'step')} of {count(forked.questions, 'question')} of {forked.origin}"
    return f"{forked.run} takes over {took}{_whole(forked)}."


def _whole(forked: ForkedRun) -> str:
    """Which questions are taken over with their answers, so that nothing is left to do."""
    if forked.whole == forked.questions:
        return ", which are all there are: nothing is computed"
    answered = f"{count(forked.whole, 'question')} with {'its answer' if forked.whole == 1 else 'their answers'}"
    return f", {answered}" if forked.whole else ""
