"""Replay of a run: whether the code still does what the record says."""

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.models.queries.replaying import Replayed, replay_run
from cotrail.models.queries.runs import resolve_run
from cotrail.systems.registry import find_system


class ReplayedRun(Struct, frozen=True, kw_only=True):
    """A run that was replayed.

    questions, steps: how many there are; diverged: the questions for which the code departs from the record.
    edited: the numbers of the steps that people edited, by their question's id.
    """

    run: str
    questions: int
    steps: int
    diverged: tuple[Replayed, ...]
    edited: dict[str, tuple[int, ...]] = {}


def replay(connection: Connection, run: str) -> ReplayedRun:
    """Runs the system's code over a run's recorded steps; needs no model and no index, and changes nothing."""
    run_id = resolve_run(connection, run)
    questions = steps = 0
    diverged = []
    edited: dict[str, tuple[int, ...]] = {}
    for question in replay_run(connection, run_id, find_system):
        questions += 1
        steps += question.steps
        if question.divergence:
            diverged.append(question)
        if question.edited:
            edited[question.key] = question.edited
    return ReplayedRun(run=run_id, questions=questions, steps=steps, diverged=tuple(diverged), edited=edited)
