"""`cotrail replay`: a check that the code still does what a run's record says."""

import typer
from rich.text import Text

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.cli.terminal.output import console, print_json
from cotrail.common.humanize import count
from cotrail.services.runs import repeating
from cotrail.services.runs.repeating import ReplayedRun

DIVERGED = 1


def replay(run: RunName, *, json: Json = False) -> None:
    """Run the system's code over a run's recorded steps, and report where it diverges.

    Needs no model, no index and no worker, and changes nothing. Exits with 1 where something diverges.
    """
    replayed = repeating.show_replay(run)
    if json:
        print_json(replayed)
    else:
        _show(replayed)
    if replayed.diverged:
        raise typer.Exit(DIVERGED)


def _show(replayed: ReplayedRun) -> None:
    screen = console()
    same = replayed.questions - len(replayed.diverged)
    agree = f"{same} of {count(replayed.questions, 'question')} with {count(replayed.steps, 'step')}"
    screen.print(f"{replayed.run}: {agree} replayed as recorded.", soft_wrap=True)
    for question, steps in replayed.edited.items():
        which = f"{'step' if len(steps) == 1 else 'steps'} {', '.join(map(str, steps))}"
        screen.print(f"question {question}: {which} edited by a person; what came of it is what the system was told.")
    if replayed.diverged:
        columns = Column(title="question"), Column(title="where the code diverges")
        print_rows(screen, columns, [[each.key, Text(each.divergence)] for each in replayed.diverged])
