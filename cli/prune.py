"""`cotrail prune`: removes runs permanently."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from msgspec.structs import asdict
from rich.progress import Progress, SpinnerColumn, TextColumn
from sqlalchemy import Engine

from cotrail.cli.arguments import Json
from cotrail.cli.output import console, print_json
from cotrail.common.humanize import count, size
from cotrail.errors import InputError
from cotrail.models.commands.pruning import Pruned, Weight, begun, ended_before, prune, weigh
from cotrail.models.queries.runs import resolve_run
from cotrail.services.store import open_store

MOST_DAYS = 36_600
"""A hundred years, as COTRAIL_RETENTION_DAYS may have."""


def prune_runs(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help="The runs' ids, the beginnings of them, or `latest`.", show_default=False),
    ] = None,
    *,
    older_than: Annotated[
        float | None,
        typer.Option(
            metavar="DAYS",
            min=0,
            max=MOST_DAYS,
            help="All runs that ended, in any way, at least this many days ago.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    json: Json = False,
) -> None:
    """Remove runs permanently: their questions, steps and attempts, and paragraphs that no other run refers to.

    A run that hasn't ended is cancelled first: `cotrail cancel RUN`. Steps that another run adopted stay with that run.
    Where it is interrupted, the next `cotrail prune` completes it.
    """
    with open_store() as engine:
        chosen, weight = _choose(engine, runs or [], older_than)
        if not dry_run and chosen and not yes:
            _confirm(weight)
        removed = None if dry_run else _prune(engine, chosen)
    if json:
        print_json({"runs": chosen, "weight": asdict(weight), "removed": removed and asdict(removed)})
    elif removed is None:
        console().print(f"{_described(weight)} would go.", *chosen, sep="\n")
    else:
        shared = (
            f"{count(removed.paragraphs, 'paragraph')} and {count(removed.demonstrations, 'set')} of demonstrations"
        )
        console().print(f"Removed {_described(weight)}; with them went {shared} that nothing else refers to.")


def _choose(engine: Engine, given: Sequence[str], older_than: float | None) -> tuple[list[str], Weight]:
    """The runs to remove, first those whose removal was interrupted, and what they hold."""
    with engine.connect() as connection:
        # An interrupted removal left a run without some of its rows, so it is completed first, whatever is asked for.
        chosen = begun(connection)
        chosen += (resolve_run(connection, run) for run in given)
        if older_than is not None:
            chosen += ended_before(connection, older_than)
        chosen = list(dict.fromkeys(chosen))
        if not given and older_than is None and not chosen:
            raise InputError("say which runs: by their ids, or with --older-than DAYS")
        return chosen, weigh(connection, chosen)


def _confirm(weight: Weight) -> None:
    if not sys.stdin.isatty():
        raise InputError(f"{_described(weight)} would be removed permanently; confirm with --yes")
    typer.confirm(f"Remove {_described(weight)} permanently?", abort=True)


def _prune(engine: Engine, chosen: Sequence[str]) -> Pruned:
    total = Pruned()
    columns = SpinnerColumn(), TextColumn("{task.description}")
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        shown = progress.add_task("")
        for chunk in prune(engine, chosen):
            total = Pruned(**{name: value + getattr(chunk, name) for name, value in asdict(total).items()})
            done = f"{count(total.questions, 'question')} and {count(total.paragraphs, 'paragraph')} removed"
            progress.update(shown, description=done)
    return total


def _described(weight: Weight) -> str:
    return f"{count(weight.runs, 'run')} with {count(weight.steps, 'step')} ({size(weight.bytes)})"
