"""Results of Rethinking with Retrieval and its baselines, read from the store."""

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.data.datasets.registry import TASK_OF
from cotrail.errors import InputError
from cotrail.evaluation.experiments.rethinking.experiment import RethinkingExperiment
from cotrail.evaluation.experiments.rethinking.protocol import trials
from cotrail.evaluation.experiments.rethinking.runs import Answered, RethinkingRun, method_of
from cotrail.faithfulness.tasks import Task
from cotrail.faithfulness.weighing import Weighing
from cotrail.models.queries.experiments import read_experiment
from cotrail.models.queries.runs import RunRecord, read_run
from cotrail.models.queries.traces import TracedQuestion, read_questions
from cotrail.services.reports.costs import run_cost
from cotrail.systems.registry import find_system
from cotrail.systems.spec import SystemSpec


def read_rethinking(connection: Connection, run_id: str) -> RethinkingRun:
    """The results of one run; InputError where it is of none of the tasks, or its questions have no answers."""
    record = read_run(connection, run_id)
    spec = find_system(record.system, record.system_version)
    questions = tuple(_answered(spec, each) for each in read_questions(connection, run_id) if each.answers)
    if not questions:
        raise InputError(f"run {run_id}: its questions come without answers, so nothing tells what is right")
    return RethinkingRun(
        id=run_id,
        method=method_of(spec, record.settings),
        task=_task_of(record),
        dataset=record.dataset,
        model=record.model_name,
        questions=questions,
        cost=run_cost(connection, run_id),
    )


def read_trials(connection: Connection, experiment: RethinkingExperiment) -> list[RethinkingRun]:
    """The runs of an experiment as they stand, in the order of its tables, each under its name there."""
    found = read_experiment(connection, experiment.name).runs
    names = [trial.name for trial in trials(experiment) if trial.name in found]
    return [replace(read_rethinking(connection, found[name]), id=name) for name in names]


def _answered(spec: SystemSpec, question: TracedQuestion) -> Answered:
    details = spec.details_in(question.details)
    weighing = details if isinstance(details, Weighing) else None
    return Answered(key=question.key, answers=question.answers, answer=question.answer, weighing=weighing)


def _task_of(record: RunRecord) -> Task:
    """The dataset's task; for a user's own questions the one in the system's settings."""
    if record.dataset in TASK_OF:
        return TASK_OF[record.dataset]
    try:
        task: Task = msgspec.convert(record.settings.get("task"), Task)
    except msgspec.ValidationError as error:
        raise InputError(
            f"run {record.id} is on {record.dataset}, which is none of {', '.join(TASK_OF)}, and its settings name no "
            "task; name other runs"
        ) from error
    return task
