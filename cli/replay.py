"""`cotrail replay`: a check that the code still does what a run's record says."""

import typer
from rich.text import Text

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.columns import Column, print_rows
from cotrail.cli.output import console, print_json
from cotrail.common.humanize import count
from cotrail.models.queries.replaying import Replayed, replay_run
from cotrail.models.queries.runs import resolve_run
from cotrail.services.store import reading
from cotrail.systems.registry import find_system

DIVERGED = 1


def replay(run: RunName, *, json: Json = False) -> None:
    """Run the system's code over a run's recorded steps, and report where it diverges.

    Needs no model, no index and no worker, and changes nothing. Exits with 1 where something diverges.
    """
    questions = steps = 0
    diverged = []
    with reading() as connection:
        run_id = resolve_run(connection, run)
        for question in replay_run(connection, run_id, find_system):
            questions += 1
            steps += question.steps
            if question.divergence:
                diverged.append(question)
    if json:
        print_json({"run": run_id, "questions": questions, "diverged": diverged})
    else:
        _show(run_id, questions, steps, diverged)
    if diverged:
        raise typer.Exit(DIVERGED)


def _show(run: str, questions: int, steps: int, diverged: list[Replayed]) -> None:
    screen = console()
    agree = f"{questions - len(diverged)} of {count(questions, 'question')} with {count(steps, 'step')}"
    screen.print(f"{run}: {agree} replayed as recorded.", soft_wrap=True)
    if diverged:
        columns = Column(title="question"), Column(title="where the code diverges")
        print_rows(screen, columns, [[question.key, Text(question.divergence)] for question in diverged])
