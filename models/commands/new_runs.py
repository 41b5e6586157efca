"""Rows of new runs and their questions, be they submitted or forked."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Row, Text, bindparam, update
from sqlalchemy.dialects.postgresql import insert

from cotrail.audit.records import QUESTION_OPENED
from cotrail.common.structs import common_fields
from cotrail.core.binding import SYSTEM_SOURCE, Binding, pinned_columns
from cotrail.models.records.contents import save_demonstrations
from cotrail.models.records.projects import own_project, qualified
from cotrail.models.records.runs import NO_LABELS, Labels, Shots, SubmittedRun, check_name, save_labels
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.base import Rows, insert_computed, recordset
from cotrail.models.schema.deployment import check_version
from cotrail.models.schema.seals import question_opened, run_opened
from cotrail.models.schema.tables import questions, runs


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
