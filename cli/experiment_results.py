"""What came out of an experiment's runs, read from the store."""

import msgspec
from sqlalchemy import Connection

from cli.scoring import scores_of
from cotrail.experiments.cells import Cell, CellResult, Cost
from cotrail.experiments.experiment import Experiment
from cotrail.experiments.protocol import position
from cotrail.metrics.factual import factual_errors
from models.annotations import read_annotations
from models.audit import Progress, read_progress, read_run
from models.experiments import read_experiment
from models.tables import QuestionStatus
from models.traces import read_questions

MODEL_KINDS = ("reason", "read")


def read_results(connection: Connection, experiment: str) -> list[CellResult]:
    """Every run of the experiment as it stands, in the order of its plan, whichever was submitted first."""
    record = read_experiment(connection, experiment)
    planned = msgspec.convert(record.plan["experiment"], Experiment)
    results = [read_result(connection, run, _cell(connection, run)) for run in record.runs.values()]
    return sorted(results, key=lambda result: position(planned, result.cell))


def read_result(connection: Connection, run: str, cell: Cell) -> CellResult:
    """What came out of one run so far."""
    record, progress = read_run(connection, run), read_progress(connection, run)
    asked = list(read_questions(connection, run))
    return CellResult(
        cell=cell,
        run=run,
        scores={question.key: scores_of(record, question) for question in asked},
        kinds={question.key: question.kind for question in asked},
        finished=progress.questions[QuestionStatus.FINISHED],
        cost=cost_of(progress),
        factual_errors=factual_errors(read_annotations(connection, run)),
    )


def cost_of(progress: Progress) -> Cost:
    """What a run's steps took when they were computed."""
    return Cost(
        steps=progress.steps,
        adopted=sum(counts.adopted for counts in progress.kinds),
        model_calls=sum(counts.done for counts in progress.kinds if counts.kind in MODEL_KINDS),
        prompt_tokens=progress.tokens("prompt_tokens"),
        cached_prompt_tokens=progress.tokens("cached_prompt_tokens"),
        generated_tokens=progress.tokens("generated_tokens"),
        seconds=sum(counts.milliseconds for counts in progress.kinds) / 1000,
    )


def _cell(connection: Connection, run: str) -> Cell:
    return msgspec.convert(read_run(connection, run).provenance["cell"], Cell)
