"""`cotrail prune`: removes runs permanently."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from msgspec.structs import replace
from rich.progress import Progress, SpinnerColumn, TextColumn

from cotrail.cli.arguments import Json
from cotrail.cli.terminal.output import console, print_json
from cotrail.common.humanize import MOST_DAYS, count, size
from cotrail.errors import InputError
from cotrail.services.runs import control
from cotrail.services.runs.control import Pruned, Weight


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
    pruned = control.choose_runs(runs or (), older_than)
    if not dry_run and pruned.runs and not yes:
        _confirm(pruned.weight)
    if not dry_run:
        pruned = replace(pruned, removed=_prune(pruned.runs))
    removed = pruned.removed
    if json:
        print_json(pruned)
    elif removed is None:
        console().print(f"{_described(pruned.weight)} would go.", *pruned.runs, sep="\n")
    else:
        shared = (
            f"{count(removed.paragraphs, 'paragraph')} and {count(removed.demonstrations, 'set')} of demonstrations"
        )
        console().print(f"Removed {_described(pruned.weight)}; with them went {shared} that nothing else refers to.")


def _confirm(weight: Weight) -> None:
    if not sys.stdin.isatty():
        raise InputError(f"{_described(weight)} would be removed permanently; confirm with --yes")
    typer.confirm(f"Remove {_described(weight)} permanently?", abort=True)


def _prune(runs: Sequence[str]) -> Pruned:
    """Removes the runs; on a terminal with what is removed so far, as large runs take long."""
    columns = SpinnerColumn(), TextColumn("{task.description}")
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        task = progress.add_task("")

        def report(pruned: Pruned) -> None:
            rows = f"{count(pruned.questions, 'question')} and {count(pruned.paragraphs, 'paragraph')} removed"
            progress.update(task, description=rows)

        return control.prune_runs(runs, report)


def _described(weight: Weight) -> str:
    return f"{count(weight.runs, 'run')} with {count(weight.steps, 'step')} ({size(weight.bytes)})"
