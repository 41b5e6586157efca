"""Carries an experiment out: submits each run as soon as what it depends on is known, and waits.

Everything is decided anew from the store at each round, so that it may be ended and begun again at any point.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from sqlalchemy import Engine

from cotrail.common.humanize import count
from models.commands.submission import submit
from models.execution.blockage import stopped_runs
from models.queries.experiments import read_experiment
from models.queries.progress import count_steps, is_complete, read_standings
from models.schema.tables import QuestionStatus
from services.experiments.schedule import Schedule

POLL_SECONDS = 1.0
LINE_SECONDS = 10.0
"""How often a line is printed where the output is no terminal."""


class Standing(Struct, frozen=True, kw_only=True):
    """How far an experiment is.

    runs: those that are submitted; planned: all; done: those that no more comes of by itself. stuck: the ids of those
    with blocked or cancelled questions, which cannot be counted.
    """

    planned: int
    runs: int
    done: int
    questions: int
    answered: int
    steps: int
    adopted: int
    stuck: tuple[str, ...]

    @property
    def over(self) -> bool:
        """Whether nothing more is to come of it by itself."""
        return self.done == self.runs and (self.runs == self.planned or bool(self.stuck))


class Conductor:
    """One experiment as it is carried out.

    pinned: the models' identities by name, as when it was begun; reuse: whether its runs adopt steps from one another.
    """

    def __init__(self, engine: Engine, schedule: Schedule[Any], pinned: Mapping[str, str], *, reuse: bool) -> None:
        self._engine = engine
        self._schedule = schedule
        self._pinned = pinned
        self._reuse = reuse

    def conduct(self, show: Callable[[Standing], None]) -> Standing:
        """Goes on until every run is done, or none can go on; returns how it stands then."""
        while True:
            self._submit_due()
            standing = self._standing()
            show(standing)
            if standing.over:
                return standing
            time.sleep(POLL_SECONDS)

    def _submit_due(self) -> None:
        with self._engine.connect() as connection:
            due = self._schedule.due(connection, read_experiment(connection, self._schedule.name))
        for cell in due:
            prepared = self._schedule.prepare(cell)
            submission = prepared.submission
            binding = replace(submission.binding, model=self._pinned[submission.model_name])
            member = {"experiment": self._schedule.name, "cell": cell.name, "reuse": self._reuse, "binding": binding}
            submit(self._engine, replace(submission, **member), prepared.questions)

    def _standing(self) -> Standing:
        with self._engine.connect() as connection:
            standings = read_standings(connection, self._schedule.name)
            stopped = stopped_runs(connection)
            steps, adopted = count_steps(connection, self._schedule.name)
        done = {run: counts for run, counts in standings.items() if run in stopped or not counts[QuestionStatus.OPEN]}
        return Standing(
            planned=self._schedule.planned,
            runs=len(standings),
            done=len(done),
            questions=sum(sum(counts.values()) for counts in standings.values()),
            answered=sum(sum(counts.values()) - counts[QuestionStatus.OPEN] for counts in standings.values()),
            steps=steps,
            adopted=adopted,
            stuck=tuple(run for run, counts in done.items() if not is_complete(counts)),
        )


@contextmanager
def display(screen: Console) -> Iterator[Callable[[Standing], None]]:
    """Bars on a terminal, and elsewhere a line now and then."""
    if not screen.is_terminal:
        yield _lines(screen)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TaskProgressColumn())
    with Progress(*columns, TimeElapsedColumn(), TextColumn("{task.fields[note]}"), console=screen) as progress:
        runs = progress.add_task("Runs", note="")
        questions = progress.add_task("Questions", note="")

        def show(standing: Standing) -> None:
            progress.update(runs, completed=standing.done, total=standing.planned)
            note = f"{count(standing.steps, 'step')}, {standing.adopted:,} of them adopted"
            progress.update(questions, completed=standing.answered, total=standing.questions, note=note)

        yield show


def _lines(screen: Console) -> Callable[[Standing], None]:
    printed, last = -LINE_SECONDS, ""

    def show(standing: Standing) -> None:
        nonlocal printed, last
        now = time.monotonic()
        if not standing.over and now - printed < LINE_SECONDS:
            return
        printed, line = now, describe(standing)
        if line != last:
            screen.print(line, soft_wrap=True)
        last = line

    return show


def describe(standing: Standing) -> str:
    """e.g. `12 of 36 runs done, 240 of 400 questions, 3,012 steps (1,400 adopted)`."""
    return (
        f"{standing.done} of {count(standing.planned, 'run')} done, {standing.answered:,} of "
        f"{count(standing.questions, 'question')} in those begun, {count(standing.steps, 'step')} "
        f"({standing.adopted:,} adopted)"
    )
