"""Submitting a run: everything about it in one transaction, so that it is there whole or not at all."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Engine, Row, Text, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import insert

from cotrail.audit.sealed_columns import QUESTION_OPENED
from cotrail.core.binding import Binding
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import AnswerForm, Demonstrations
from cotrail.core.questions import Question
from models.execution.advancing import advance_questions, lock_questions
from models.records.contents import CHUNK, save_demonstrations, save_paragraphs
from models.records.runs import Runs
from models.schema.rows import Rows, insert_computed, recordset
from models.schema.seals import question_opened, run_opened
from models.schema.tables import StepState, questions, runs

WAKE = "cotrail_wake"
"""The channel on which the maintenance process is told that steps are waiting to be sent."""


class Submission(Struct, frozen=True, kw_only=True):
    """A validated run, as it is stored.

    settings: the system's, every default spelled out; provenance: versions and paths, for a reader.
    experiment, cell: the experiment that the run is part of, which must be open, and what names the run in it.
    reuse: whether the run's steps and those of the experiment's other runs that reuse are adopted from one another.
    priority: runs with a higher one have their questions admitted first.
    origin, forked_at: the run that it is forked from, and the point that was named.
    """

    id: str
    system: str
    system_version: int
    settings: dict[str, Any]
    dataset: str
    corpus: str | None
    model_name: str
    binding: Binding
    shots: dict[AnswerForm, Demonstrations]
    provenance: dict[str, Any]
    embedder_name: str = ""
    entailer_name: str = ""
    experiment: str | None = None
    cell: str | None = None
    reuse: bool = False
    priority: int = 0
    origin: str | None = None
    forked_at: str | None = None


_NEW_RUN = insert(runs).on_conflict_do_nothing(index_elements=[runs.c.experiment_id, runs.c.cell]).returning(runs.c.id)
_OPEN_RUN = update(runs).where(runs.c.id == bindparam("run")).values(opened=run_opened()).returning(runs.c.opened)
_asked = recordset(*(questions.c[name] for name in QUESTION_OPENED))
_opened = bindparam("opened", type_=Text)
_NEW_QUESTIONS = insert_computed(questions, _asked, opened=question_opened(_asked, _opened)).returning(
    questions.c.id, questions.c.position, questions.c.opened
)


def submit(engine: Engine, submission: Submission, asked: Sequence[Question]) -> str:
    """Records a run, its questions and each question's first steps, and wakes whoever sends them; returns its id.

    Where the cell of the experiment has a run already, nothing is recorded, and it is that run's id.
    """
    known = Runs()
    with engine.begin() as connection:
        # First of all: who submits the same cell at once waits here, and then finds this run.
        opened = record_run(connection, submission, len(asked))
        if opened is None:
            of_cell = runs.c.experiment_id == submission.experiment, runs.c.cell == submission.cell
            return str(connection.execute(select(runs.c.id).where(*of_cell)).scalar_one())
        _save_pinned(connection, asked)
        for start in range(0, len(asked), CHUNK):
            rows = [
                _question_row(submission.id, position, question)
                for position, question in enumerate(asked[start : start + CHUNK], start=start)
            ]
            recorded = record_questions(connection, rows, opened)
            locked = lock_questions(connection, [each.id for each in recorded])
            advance_questions(connection, known, locked, send=False, state=StepState.WAITING)
        connection.execute(select(func.pg_notify(WAKE, submission.id)))
    return submission.id


def record_run(connection: Connection, submission: Submission, size: int) -> str | None:
    """Records a run without its questions; returns the digest of its configuration, None where its cell has a run."""
    row = _run_row(submission) | {"size": size, "opened": ""}
    if connection.execute(_NEW_RUN, row).scalar() is None:
        return None
    save_demonstrations(connection, {shots.digest: shots for shots in submission.shots.values()})
    return str(connection.execute(_OPEN_RUN, {"run": submission.id}).scalar_one())


def record_questions(connection: Connection, rows: Rows, opened: str) -> Sequence[Row[tuple[int, int, str]]]:
    """Records questions of a run that was opened so; returns each one's id, its position and its digest."""
    return connection.execute(_NEW_QUESTIONS, {"rows": rows, "opened": opened}).all()


def _save_pinned(connection: Connection, asked: Sequence[Question]) -> None:
    """Stores the passages that questions pin, so that prompts can refer to them."""
    passages = [Paragraph(id="", title=q.pinned.title, text=q.pinned.text) for q in asked if q.pinned]
    save_paragraphs(connection, {passage.digest: passage for passage in passages})


def _run_row(submission: Submission) -> dict[str, Any]:
    binding = submission.binding
    return {
        "id": submission.id,
        "experiment_id": submission.experiment,
        "cell": submission.cell,
        "reuse": submission.reuse,
        "priority": submission.priority,
        "origin": submission.origin,
        "forked_at": submission.forked_at,
        "system": submission.system,
        "system_version": submission.system_version,
        "settings": submission.settings,
        "dataset": submission.dataset,
        "corpus": submission.corpus,
        "corpus_revision": binding.corpus,
        "knowledge": binding.knowledge,
        "model_name": submission.model_name,
        "model": binding.model,
        "embedder_name": submission.embedder_name,
        "embedder": binding.embedder,
        "entailer_name": submission.entailer_name,
        "entailer": binding.entailer,
        "profile": binding.profile,
        "temperature": binding.temperature,
        "seed": binding.seed,
        "demonstrations": {form: shots.digest for form, shots in submission.shots.items()},
        "provenance": submission.provenance,
    }


def _question_row(run_id: str, position: int, question: Question) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "position": position,
        "key": question.id,
        "text": question.text,
        "answers": question.answers,
        "gold": question.gold,
        "pinned": question.pinned,
        "evidence": question.evidence,
        "kind": question.kind,
    }
