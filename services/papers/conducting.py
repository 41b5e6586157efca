"""Conduct of an experiment: each run is submitted as soon as what it depends on is known, until all are done.

Each round decides everything again from what the store holds, so a process may end at any point and another take over.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Engine

from cotrail.core.repeats import read_repeat
from cotrail.evaluation.experiments.registry import complete_plan
from cotrail.models.commands.experiment_plans import open_experiment
from cotrail.models.commands.submission import submit
from cotrail.models.queries.progress import count_steps, is_complete, read_standings
from cotrail.models.records.blockage import stopped_runs
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.papers.progress import ExperimentProgress
from cotrail.services.papers.recorded import StoredRuns
from cotrail.services.papers.schedule import Schedule
from cotrail.services.runs.planning import with_plan
from cotrail.systems.registry import find_system

POLL_SECONDS = 1.0


def begin(engine: Engine, schedule: Schedule, plan: dict[str, Any], *, reuse: bool) -> "Conductor":
    """Records an experiment with its schedule's plan, or continues one; InputError where that has another plan.

    reuse: whether its runs adopt steps from one another.
    """
    return Conductor(
        engine, schedule, open_experiment(engine, schedule.name, plan, complete_plan)["models"], reuse=reuse
    )


class Conductor:
    """One experiment under way.

    pinned: the models' identities by name, as when it was begun; reuse: whether its runs adopt steps from one another.
    """

    def __init__(self, engine: Engine, schedule: Schedule, pinned: Mapping[str, str], *, reuse: bool) -> None:
        self._engine = engine
        self._schedule = schedule
        self._pinned = pinned
        self._reuse = reuse

    def conduct(self, show: Callable[[ExperimentProgress], None]) -> ExperimentProgress:
        """Submits runs until every run is done or none can continue; shows each round's progress, returns the last."""
        while True:
            self._submit_due()
            progress = self.progress()
            show(progress)
            if progress.over:
                return progress
            time.sleep(POLL_SECONDS)

    def progress(self) -> ExperimentProgress:
        """The experiment's progress as the store has it now."""
        with self._engine.connect() as connection:
            standings = read_standings(connection, self._schedule.name)
            stopped = stopped_runs(connection)
            steps, adopted = count_steps(connection, self._schedule.name)
        ended = {run: counts for run, counts in standings.items() if run in stopped or not counts[QuestionStatus.OPEN]}
        return ExperimentProgress(
            planned=len(self._schedule.cells),
            runs=len(standings),
            done=len(ended),
            questions=sum(sum(counts.values()) for counts in standings.values()),
            answered=sum(sum(counts.values()) - counts[QuestionStatus.OPEN] for counts in standings.values()),
            steps=steps,
            adopted=adopted,
            stuck=tuple(run for run, counts in ended.items() if not is_complete(counts)),
        )

    def _submit_due(self) -> None:
        with self._engine.connect() as connection:
            due = self._schedule.due(StoredRuns(connection, self._schedule.name))
        for cell in due:
            prepared = self._schedule.prepare(cell)
            submission = prepared.submission
            # The model as the experiment pinned it, even if its file has another name now.
            binding = replace(submission.binding, model=self._pinned[submission.model_name])
            # Another conductor may submit this cell too; the store keeps the first run of a cell.
            # Repeats adopt nothing: each is to be a sample of its own, whatever the steps depend on.
            reuse = self._reuse and read_repeat(submission.provenance) is None
            member = {"experiment": self._schedule.name, "cell": cell.name, "reuse": reuse, "binding": binding}
            tags = dict.fromkeys((*submission.labels.tags, self._schedule.name))
            labels = replace(submission.labels, tags=tuple(tags))
            planned = with_plan(replace(submission, **member, labels=labels), prepared.questions)
            submit(self._engine, planned, prepared.questions, find_system)
