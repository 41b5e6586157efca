"""Judges' runs: a model grades the answers of a run that has ended, whose record stays as it is."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.common.humanize import count
from cotrail.core.questions import Question
from cotrail.errors import InputError
from cotrail.evaluation.judging.calibration import read_labels
from cotrail.evaluation.judging.tallies import scores_of
from cotrail.models.queries import judgements
from cotrail.models.queries.judgements import count_unended, read_judged_answers, read_keys
from cotrail.models.queries.runs import RunRecord, read_run
from cotrail.services.actor import Scope
from cotrail.services.library.named_files import JudgeFiles
from cotrail.services.operations.operation import App, current_app, operation
from cotrail.services.runs import submission
from cotrail.services.runs.checking import check_worker_keys, checked
from cotrail.services.runs.configuring import configure
from cotrail.services.runs.labels import find_run
from cotrail.services.runs.pinning import file_record, pin, with_plan
from cotrail.services.runs.requests import make_request
from cotrail.services.runs.resolving import resolve_engines
from cotrail.services.runs.submission import Estimate, PreparedRun, Submitted, read_submission
from cotrail.services.store import open_store, reading
from cotrail.systems.judge.rubric import RUBRICS, Rubric, find_rubric
from cotrail.systems.judge.system import SPEC
from cotrail.systems.registry import recorded_system


class JudgeRequest(JudgeFiles, Struct, frozen=True, kw_only=True):
    """Request for a judge's run.

    run: the judged one, by its id, its beginning, its name, or `latest`; against: the other one of a preference.
    rubric: a built-in one, or a TOML file.
    model: the judge; the default model without it. others: further fields of a run's request, such as `serving`.
    """

    run: str
    against: str | None = None
    model: str | None = None
    limit: int | None = None


class PreparedJudge(Struct, frozen=True, kw_only=True):
    """A judge's run that can be submitted.

    judged: the ids of the judged runs. left_out: how many of their questions aren't asked about, since they have no
        answer, or no published one where the rubric shows these.
    """

    prepared: PreparedRun
    judged: tuple[str, ...]
    rubric: Rubric
    left_out: int


class SubmittedJudge(Struct, frozen=True, kw_only=True):
    """A judge's run that was just submitted; see `PreparedJudge`."""

    run: str
    judged: tuple[str, ...]
    rubric: str
    model: str
    questions: int
    left_out: int


def prepare_judge(connection: Connection, request: JudgeRequest) -> PreparedJudge:
    """Checks all that a judge's run needs and reads the answers that it grades; raises InputError and its kinds."""
    rubric = find_rubric(request.rubric)
    _check_number(rubric, request)
    judged = _judged_runs(connection, request)
    for run in judged:
        _check_judgeable(connection, run)
    asked = _questions(connection, judged, rubric)
    settings = {"rubric": msgspec.to_builtins(rubric), "runs": [run.id for run in judged]}
    fields = {
        "system": SPEC.name,
        "dataset": judged[0].dataset,
        "questions": "",
        "model": request.model,
        "settings": settings,
    }
    given = make_request(fields | request.others)
    resolved = checked(resolve_engines(given, configure(SPEC, given), corpora={}, shots={}))
    pinned = pin(
        resolved,
        {
            "judges": [{"run": run.id, "digest": run.digest} for run in judged],
            **({} if request.rubric in RUBRICS else {"files": {"rubric": file_record(Path(request.rubric))}}),
        },
    )
    graded = asked[: request.limit]
    return PreparedJudge(
        prepared=PreparedRun(submission=with_plan(pinned, graded), questions=graded),
        judged=tuple(run.id for run in judged),
        rubric=rubric,
        left_out=judged[0].size - len(asked),
    )


def submitted(judge: PreparedJudge) -> SubmittedJudge:
    """What is said of a judge's run that was submitted."""
    return SubmittedJudge(
        run=judge.prepared.submission.id,
        judged=judge.judged,
        rubric=judge.rubric.name,
        model=judge.prepared.submission.model_name,
        questions=len(judge.prepared.questions),
        left_out=judge.left_out,
    )


def read_judge(connection: Connection, run_id: str) -> SubmittedJudge:
    """What is said of a judge's run that was submitted before."""
    record = read_run(connection, run_id)
    judged = [read_run(connection, each) for each in record.settings["runs"]]
    rubric = msgspec.convert(record.settings["rubric"], Rubric)
    return SubmittedJudge(
        run=run_id,
        judged=tuple(run.id for run in judged),
        rubric=rubric.name,
        model=record.model_name,
        questions=record.size,
        left_out=judged[0].size - len(_questions(connection, judged, rubric)),
    )


def _check_number(rubric: Rubric, request: JudgeRequest) -> None:
    """Raises InputError where a rubric for two answers gets one, or the other way round."""
    if rubric.asks == "pair" and request.against is None:
        raise InputError(f"the rubric {rubric.name} compares two runs: name the other one with --against")
    if rubric.asks != "pair" and request.against is not None:
        raise InputError(
            f"the rubric {rubric.name} grades the answers of one run: leave out --against, or take --rubric preference"
        )


def _judged_runs(connection: Connection, request: JudgeRequest) -> list[RunRecord]:
    first = find_run(connection, request.run)
    if request.against is None:
        return [first]
    second = find_run(connection, request.against)
    if first.id == second.id:
        raise InputError(f"{first.id} can't be compared with itself: name another run with --against")
    if read_keys(connection, first.id) != read_keys(connection, second.id):
        raise InputError(f"{first.id} and {second.id} have other questions: a preference needs the same ones")
    return [first, second]


def _check_judgeable(connection: Connection, run: RunRecord) -> None:
    """Raises InputError where a run has no answers, or not yet all that it will have."""
    spec = recorded_system(run.system, run.system_version)
    if spec and spec.judges:
        raise InputError(f"{run.id} is a judge's own run: name the run that it judged, {run.settings['runs'][0]}")
    if spec and not spec.answers_with(run.settings):
        raise InputError(f"{run.id} has no answers to judge: its reader is `none`, and its paragraphs are all it has")
    if unended := count_unended(connection, run.id):
        raise InputError(
            f"{run.id} has {count(unended, 'question')} without an end: wait for it (`cotrail watch {run.id}`), "
            "or cancel it, before its answers are judged"
        )


def _questions(connection: Connection, judged: Sequence[RunRecord], rubric: Rubric) -> tuple[Question, ...]:
    """The questions that are asked about: those with an answer of every run, and a published one if that is shown."""
    first, *others = (
        {
            each.id: each
            for each in read_judged_answers(
                connection, run.id, chains=rubric.shows("sentences"), paragraphs=rubric.shows("paragraphs")
            )
        }
        for run in judged
    )
    answered = [each for each in first.values() if all(each.id in other for other in others)]
    if not answered:
        raise InputError(f"no question of {' and '.join(run.id for run in judged)} has an answer to judge")
    asked = [each for each in answered if each.answers or not rubric.shows("answers")]
    if not asked:
        raise InputError(
            f"the rubric {rubric.name} goes by the published answers, and the dataset {judged[0].dataset} has none: "
            "take one that doesn't, such as faithful or preference"
        )
    return tuple(
        replace(each, judged=(*each.judged, *(answer for other in others for answer in other[each.id].judged)))
        for each in asked
    )


class BegunJudge(Struct, frozen=True, kw_only=True):
    """A judge's run that was just submitted, and what there is to say of that."""

    judge: SubmittedJudge
    submitted: Submitted


def _begun_before(connection: Connection, runs: Sequence[str]) -> tuple[BegunJudge, ...]:
    return tuple(
        BegunJudge(judge=read_judge(connection, run), submitted=read_submission(connection, [run])) for run in runs
    )


@operation("judging.begin", "POST", "/judges", Scope.SUBMIT, status=201, replayed=_begun_before)
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
        first, *others = (each.prepared for each in prepared)
        submission.submit(engine, replace(first, further=tuple(each.submission for each in others)))
    with reading() as connection:
        return tuple(
            BegunJudge(
                judge=submitted(each),
                submitted=read_submission(connection, [run.id for run in each.prepared.runs], warning),
            )
            for each, warning in zip(prepared, warnings, strict=True)
        )


@operation("judging.estimate", "POST", "/judges/estimate", Scope.SUBMIT)
def estimate(judge: JudgeRequest, *, models: Sequence[str] = (), labels: Path | None = None) -> tuple[Estimate, ...]:
    """Say what each judge's run may take and cost, and don't submit it."""
    with reading() as connection:
        prepared = _prepared(connection, judge, models, labels)
        return tuple(submission.estimate(connection, each.prepared) for each in prepared)


def _prepared(
    connection: Connection, judge: JudgeRequest, models: Sequence[str], labels: Path | None
) -> list[PreparedJudge]:
    requests = [replace(judge, model=model) for model in models] or [judge]
    prepared = [prepare_judge(connection, each) for each in requests]
    if labels is None:
        return prepared
    for each in prepared:
        if each.rubric.asks == "pair":
            raise InputError("a preference can't be calibrated: labels are of one answer alone; leave out --calibrate")
        judged = {question.key for question in judgements.read_judged(connection, each.judged[0])}
        read_labels(labels, judged, scores_of(each.rubric))  # refuses those by which it couldn't be calibrated
    return prepared
