"""Submitting runs: in one transaction, so that they are stored whole or not at all.

The rows of runs that are forked are made here too.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Engine, Row, Text, bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from cotrail.audit.records import QUESTION_OPENED
from cotrail.common.structs import common_fields
from cotrail.core.binding import SYSTEM_SOURCE, Binding, pinned_columns
from cotrail.core.questions import Paragraph, Question, recorded_kinds
from cotrail.errors import InputError
from cotrail.models.records.advancing import advance_questions, begin_questions
from cotrail.models.records.budgets import check_quota, lock_quota
from cotrail.models.records.contents import CHUNK_ROWS, save_demonstrations, save_paragraphs
from cotrail.models.records.idempotency import claim_key
from cotrail.models.records.projects import own_project, qualified
from cotrail.models.records.questions import lock_questions
from cotrail.models.records.runs import (
    NO_LABELS,
    FindSystem,
    Labels,
    Runs,
    Shots,
    SubmittedRun,
    check_name,
    save_labels,
)
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.base import Rows, insert_computed, recordset
from cotrail.models.schema.database import notify
from cotrail.models.schema.deployment import check_version
from cotrail.models.schema.seals import question_opened, run_opened
from cotrail.models.schema.tables import experiments, questions, runs


class Submission(SubmittedRun, frozen=True, kw_only=True):
    """A validated run, as it is stored.

    experiment: that which the run is part of, which must be recorded; served: see `RunPlan`.
    labels: its name and tags, which may be changed later.
    """

    binding: Binding
    shots: Shots
    experiment: str | None = None
    cell: str | None = None
    reuse: bool = False
    priority: int = 0
    origin: str | None = None
    forked_at: str | None = None
    served: bool = False
    labels: Labels = NO_LABELS

    @property
    def corpus(self) -> str | None:
        """The first of its corpora."""
        return self.binding.corpus()[0] or None

    @property
    def searches(self) -> bool:
        """Whether it searches for paragraphs: it pins what is searched."""
        return bool(self.binding.corpora or self.binding.pins.keys() - {SYSTEM_SOURCE})


class AskedQuestion(Struct, frozen=True, kw_only=True):
    """A question whose messages are still to be sent.

    run: the id of its run; id: that of its row; warnings: what the run lacks, or has another thing for.
    """

    run: str
    id: int
    messages: tuple[Dispatch, ...]
    warnings: tuple[str, ...] = ()


_NEW_RUN = insert(runs).on_conflict_do_nothing(index_elements=[runs.c.experiment_id, runs.c.cell]).returning(runs.c.id)
_OPEN_RUN = update(runs).where(runs.c.id == bindparam("run")).values(opened=run_opened()).returning(runs.c.opened)
_asked = recordset(*(questions.c[name] for name in QUESTION_OPENED))
_opened = bindparam("opened", type_=Text)
_NEW_QUESTIONS = insert_computed(questions, _asked, opened=question_opened(_asked, _opened)).returning(
    questions.c.id, questions.c.position, questions.c.opened
)


def insert_run(connection: Connection, submission: Submission, size: int) -> bool:
    """Insert a run without its questions; returns False where the experiment's cell has a run already.

    Raises OutdatedError where the database belongs to another version of cotrail.
    """
    check_version(connection)
    own = {"project": own_project(connection), "experiment_id": experiment_of(connection, submission)}
    row = _run_row(submission) | own | {"size": size, "opened": ""}
    return connection.execute(_NEW_RUN, row).scalar() is not None


def experiment_of(connection: Connection, submission: Submission) -> str | None:
    """Return the id of the experiment that a run is part of."""
    return None if submission.experiment is None else qualified(connection, submission.experiment)


def open_run(connection: Connection, submission: Submission) -> str:
    """Store an inserted run's demonstrations, labels and the digest of its configuration; returns the digest.

    Raises InputError where its name may be taken for the id of a run.
    """
    if submission.labels != NO_LABELS:
        if submission.labels.name is not None:
            check_name(connection, submission.labels.name)
        save_labels(connection, submission.id, submission.labels)
    save_demonstrations(connection, {shots.digest: shots for shots in submission.shots.values()})
    return str(connection.execute(_OPEN_RUN, {"run": submission.id}).scalar_one())


def record_questions(connection: Connection, rows: Rows, opened: str) -> Sequence[Row[tuple[int, int, str]]]:
    """Record questions of a run; returns the id, position and digest of each. opened: the digest of the run."""
    return connection.execute(_NEW_QUESTIONS, {"rows": rows, "opened": opened}).all()


def _run_row(submission: Submission) -> dict[str, Any]:
    return {
        **common_fields(submission, SubmittedRun),
        **pinned_columns(submission.binding),
        "served": submission.served,
        "demonstrations": {form: shots.digest for form, shots in submission.shots.items()},
    }


CHUNK_CHARACTERS = 2**24
"""Characters of judged answers' paragraphs in one statement; PostgreSQL refuses JSON of 2^28 bytes."""


def submit(engine: Engine, submission: Submission, asked_questions: Sequence[Question], find_system: FindSystem) -> str:
    """Record a run, its questions and each question's first steps, and wake maintenance; returns the run's id.

    Where the cell of the experiment has a run already, nothing is recorded, and the id of that run is returned.
    """
    [run_id] = submit_together(engine, [submission], asked_questions, find_system)
    return run_id


def submit_asked(
    engine: Engine, submission: Submission, question: Question, find_system: FindSystem
) -> tuple[int, list[Dispatch]]:
    """Record a run of one question that somebody waits for: its first steps are ready, and wait for no admission.

    Returns the id of the question's row, and the messages that the caller sends now; maintenance does if it can't.
    """
    plans = Runs(find_system)
    with engine.begin() as connection:
        claim_key(connection, [submission.id])
        quota = lock_quota(connection)
        insert_run(connection, submission, 1)
        opened = open_run(connection, submission)
        [recorded] = record_questions(connection, [question_row(submission.id, 0, question)], opened)
        check_quota(connection, quota, [submission.provenance])
        following = advance_questions(connection, plans, lock_questions(connection, [recorded.id]))
        return recorded.id, following.get(recorded.id, [])


def submit_together(
    engine: Engine, submissions: Sequence[Submission], asked_questions: Sequence[Question], find_system: FindSystem
) -> list[str]:
    """The same of several runs of the same questions: all of them are recorded, or none; returns their ids.

    Raises QuotaExceededError, and MadeBefore where the connection's request was carried out before.
    """
    plans = Runs(find_system)
    with engine.begin() as connection:
        claim_key(connection, [each.id for each in submissions])
        quota = lock_quota(connection)
        ids = [_record(connection, plans, each, asked_questions) for each in submissions]
        new = [each.provenance for each, id_ in zip(submissions, ids, strict=True) if each.id == id_]
        if new:
            check_quota(connection, quota, new)
        return ids


def _record(connection: Connection, plans: Runs, submission: Submission, asked_questions: Sequence[Question]) -> str:
    # First of all: another process that submits the same cell waits here, and then finds this run.
    if not insert_run(connection, submission, len(asked_questions)):
        of_cell = runs.c.experiment_id == experiment_of(connection, submission), runs.c.cell == submission.cell
        return str(connection.execute(select(runs.c.id).where(*of_cell)).scalar_one())
    opened = open_run(connection, submission)
    # The passages that questions pin, so that prompts can refer to them.
    pinned = (question.pinned for question in asked_questions if question.pinned)
    passages = [Paragraph(id="", title=each.title, text=each.text) for each in pinned]
    save_paragraphs(connection, {passage.digest: passage for passage in passages})
    for rows in _chunks(submission.id, asked_questions):
        recorded = record_questions(connection, rows, opened)
        begin_questions(connection, plans, [each.id for each in recorded])
    notify(connection, submission.id)
    return submission.id


def _chunks(run_id: str, asked_questions: Sequence[Question]) -> Iterator[Rows]:
    """Yield the questions' rows, as many at once as one statement takes well."""
    rows: Rows = []
    characters = 0
    for position, question in enumerate(asked_questions):
        rows.append(question_row(run_id, position, question))
        # Of a question's texts, only documents behind judged answers fill a statement before its rows do.
        characters += sum(len(paragraph.text) for answer in question.judged for paragraph in answer.paragraphs)
        if len(rows) == CHUNK_ROWS or characters > CHUNK_CHARACTERS:
            yield rows
            rows, characters = [], 0
    if rows:
        yield rows


def question_row(run_id: str, position: int, question: Question) -> dict[str, Any]:
    """Return the row of a question at this place in its run, before it is opened."""
    return {
        "run_id": run_id,
        "position": position,
        "key": question.id,
        "text": question.text,
        "answers": question.answers,
        "gold": question.gold,
        "pinned": question.pinned,
        "evidence": question.evidence,
        "kind": recorded_kinds(question.kinds),
        "judged": question.judged or None,
    }


# Recording the plan of an experiment, which never changes afterwards.

MAX_NAMED = 3
"""The largest number of differing parts of a plan that a message names."""

Plan = dict[str, Any]


def open_experiment(engine: Engine, experiment_id: str, plan: Plan) -> Plan:
    """Record an experiment, or continue one; raises InputError where it was begun with another plan.

    Returns the recorded plan: an experiment keeps the models' identities that it was begun with.
    """
    given = msgspec.json.decode(msgspec.json.encode(plan))
    with engine.begin() as connection:
        id_ = qualified(connection, experiment_id)
        row = {"id": id_, "plan": given, "project": own_project(connection)}
        # Insert, then read: of processes that begin the same experiment at once, one records its plan and all read it.
        connection.execute(insert(experiments).values(row).on_conflict_do_nothing())
        recorded = connection.execute(select(experiments.c.plan).where(experiments.c.id == id_)).scalar_one()
    if differing := _differences(recorded, given):
        named = ", ".join(differing[:MAX_NAMED]) + (", ..." if len(differing) > MAX_NAMED else "")
        raise InputError(
            f"experiment {experiment_id!r} was begun with another file: {named} differ. "
            "Put the file back as it was to continue, or give the experiment another name to begin a new one"
        )
    return dict(recorded)


def _differences(recorded: Any, given: Any, path: str = "") -> list[str]:
    """Return where two plans differ, as paths of keys, each as long as both sides have tables there."""
    if not (isinstance(recorded, dict) and isinstance(given, dict)):
        return [] if recorded == given else [path]
    return [
        difference
        for key in sorted(recorded.keys() | given.keys())
        for difference in _differences(recorded.get(key), given.get(key), f"{path}.{key}".lstrip("."))
    ]
