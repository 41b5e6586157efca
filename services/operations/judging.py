"""Judges: language models that grade the answers of runs that have ended."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.services.access.actor import Scope
from cotrail.services.operations.apps import App, current_app
from cotrail.services.operations.operation import operation
from cotrail.services.runs import estimating, submission
from cotrail.services.runs.estimating import Estimate
from cotrail.services.runs.judging import (
    JudgeRequest,
    PreparedJudge,
    SubmittedJudge,
    prepare_judge,
    read_judge,
    submitted,
    together,
)
from cotrail.services.runs.named_runs import find_run
from cotrail.services.runs.prepared_run import PreparedRun
from cotrail.services.runs.submitted import Submitted
from cotrail.services.runs.submitted_before import read_submission
from cotrail.services.runs.worker_keys import check_worker_keys
from cotrail.services.store import open_store, reading
from cotrail.services.views.calibrating import RunCalibration, calibrate, check_labels


class BegunJudge(Struct, frozen=True, kw_only=True):
    """A judge's run that was just submitted, and what there is to say of that."""

    judge: SubmittedJudge
    submitted: Submitted


def _begun_before(runs: Sequence[str]) -> tuple[BegunJudge, ...]:
    with reading() as connection:
        return tuple(
            BegunJudge(judge=read_judge(connection, run), submitted=read_submission(connection, [run])) for run in runs
        )


@operation("POST", "/judges", Scope.SUBMIT, status=201, again=_begun_before)
def begin(
    judge: JudgeRequest, *, models: Sequence[str] = (), labels: Path | None = None, app: App = current_app
) -> tuple[BegunJudge, ...]:
    """Have language models grade the answers of a run, each in a run of its own; all of them begin, or none.

    models: the judges, in place of the request's. labels: people's labels of the answers; they have to be such that the
    judges can be compared with them.
    """
    with reading() as connection:
        prepared = _prepared(connection, judge, models, labels)
    warnings = [
        (*each.prepared.warnings, *check_worker_keys(app, each.prepared.submission.binding)) for each in prepared
    ]
    with open_store() as engine:
        submission.submit(engine, together([each.prepared for each in prepared]))
    with reading() as connection:
        return tuple(
            BegunJudge(judge=submitted(each), submitted=_answer(connection, each.prepared, told))
            for each, told in zip(prepared, warnings, strict=True)
        )


@operation("POST", "/judges/estimate", Scope.SUBMIT)
def estimate(judge: JudgeRequest, *, models: Sequence[str] = (), labels: Path | None = None) -> tuple[Estimate, ...]:
    """Say what each judge's run may take and cost, and don't submit it."""
    with reading() as connection:
        prepared = _prepared(connection, judge, models, labels)
        return tuple(estimating.estimate(connection, each.prepared) for each in prepared)


@operation("POST", "/runs/{run}/calibration", Scope.READ)
def calibration(run: str, labels: Path) -> RunCalibration:
    """Compare the judges of a run with people's labels of its answers; labels: their file."""
    with reading() as connection:
        return calibrate(connection, find_run(connection, run), labels)


def _prepared(
    connection: Connection, judge: JudgeRequest, models: Sequence[str], labels: Path | None
) -> list[PreparedJudge]:
    requests = [replace(judge, model=model) for model in models] or [judge]
    prepared = [prepare_judge(connection, each) for each in requests]
    if labels is not None:
        for each in prepared:
            check_labels(connection, each.judged[0], each.rubric, labels)
    return prepared


def _answer(connection: Connection, prepared: PreparedRun, warnings: Sequence[str]) -> Submitted:
    return read_submission(connection, [run.id for run in prepared.runs], warnings)
