"""Means of earlier runs: what a finished question took, for estimates."""

from typing import Any

from msgspec import Struct
from sqlalchemy import BigInteger, Connection, Text, bindparam, func, or_, select

from cotrail.core.money import Usage
from cotrail.models.records.projects import project_of
from cotrail.models.schema.states import QuestionStatus, StepState
from cotrail.models.schema.tables import questions, runs, steps

LATEST_RUNS = 5
"""The number of latest runs that are measured: settings and models change with time."""


class Measured(Struct, frozen=True, kw_only=True):
    """What the finished questions of earlier runs took together, where it was computed for them or adopted.

    model: whose runs they are; empty where they are of several.
    """

    model: str
    runs: int
    questions: int
    steps: int
    usage: Usage


def read_measured(connection: Connection, *, system: str, version: int, dataset: str, model: str) -> Measured | None:
    """Return what earlier runs of a system on a dataset took, with this model or else any; None where there is none."""
    asked = {"system": system, "version": version, "dataset": dataset, "project": project_of(connection)}
    for name in (model, None):
        row = connection.execute(_MEASURED, {**asked, "model": name}).mappings().one()
        if row["questions"]:
            usage = Usage(**{each: int(row[each]) for each in Usage.__struct_fields__})
            return Measured(
                model=name or "", runs=row["runs"], questions=row["questions"], steps=row["steps"], usage=usage
            )
    return None


def _sum(column: Any) -> Any:
    return func.coalesce(func.sum(column), 0)


_model, _project = bindparam("model", type_=Text), bindparam("project", type_=Text)
_latest = (
    select(runs.c.id)
    .where(
        runs.c.system == bindparam("system"),
        runs.c.system_version == bindparam("version"),
        runs.c.dataset == bindparam("dataset"),
        or_(_model.is_(None), runs.c.model_name == _model),
        or_(_project.is_(None), runs.c.project == _project),
        # Closed ones: the questions that are finished first are the short ones.
        runs.c.digest.is_not(None),
    )
    .order_by(runs.c.created_at.desc(), runs.c.id.desc())
    .limit(LATEST_RUNS)
)
_ended = steps.c.state.in_([StepState.FINISHED, StepState.FAILED])
_MEASURED = (
    select(
        func.count(questions.c.run_id.distinct()).label("runs"),
        func.count(questions.c.id.distinct()).label("questions"),
        func.count(steps.c.id).label("steps"),
        func.count(steps.c.prompt_tokens).label("calls"),
        _sum(steps.c.prompt_tokens).label("input_tokens"),
        _sum(steps.c.cached_prompt_tokens).label("cached_tokens"),
        _sum(steps.c.result["cache_written_tokens"].astext.cast(BigInteger)).label("cache_written_tokens"),
        _sum(steps.c.generated_tokens).label("output_tokens"),
        _sum(steps.c.result["thought_tokens"].astext.cast(BigInteger)).label("thought_tokens"),
        func.count(steps.c.result["estimated"].astext).label("estimated"),
    )
    .join_from(questions, steps, steps.c.question_id == questions.c.id)
    .where(
        questions.c.run_id.in_(_latest),
        questions.c.status == QuestionStatus.FINISHED,
        questions.c.halted.is_(None),  # by a budget, which another run may not have
        _ended,
    )
)
