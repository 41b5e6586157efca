"""Rows of new runs and their questions, be they submitted or forked."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Row, Text, bindparam, update
from sqlalchemy.dialects.postgresql import insert

from cotrail.audit.sealed_columns import QUESTION_OPENED
from cotrail.core.binding import NAMES, Binding, pinned_columns
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.models.records.contents import save_demonstrations
from cotrail.models.records.labels import NO_LABELS, Labels, check_name, save_labels
from cotrail.models.records.projects import own_project, qualified
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.base import Rows, insert_computed, recordset
from cotrail.models.schema.deployment import check_version
from cotrail.models.schema.seals import question_opened, run_opened
from cotrail.models.schema.tables import questions, runs


class Submission(Struct, frozen=True, kw_only=True):
    """A validated run, as it is stored.

    settings: the system's, every default spelled out; provenance: versions and paths, for a reader.
    experiment, cell: the experiment that the run is part of, which must be recorded, and the run's name within it.
    reuse: whether this run and the experiment's others that reuse adopt each other's steps.
    priority: runs with a higher one have their questions admitted first.
    served: whether its language model answers from a server or a script and doesn't compute in the worker.
    batched: whether it is asked in batches.
    asked: whether it is a single question that somebody waits for, whose steps go ahead of all others.
    origin, forked_at: the run that it is forked from, and the step or kind that was named.
    labels: its name and tags, which may be changed later.
    """

    id: str
    system: str
    system_version: int
    settings: dict[str, Any]
    dataset: str
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
    served: bool = False
    batched: bool = False
    asked: bool = False
    origin: str | None = None
    forked_at: str | None = None
    labels: Labels = NO_LABELS

    @property
    def searches(self) -> bool:
        """Whether it searches for paragraphs: it pins what is searched."""
        return bool(self.binding.corpora or self.binding.pins)


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
        "id": submission.id,
        "cell": submission.cell,
        "reuse": submission.reuse,
        "priority": submission.priority,
        "served": submission.served,
        "batched": submission.batched,
        "asked": submission.asked,
        "origin": submission.origin,
        "forked_at": submission.forked_at,
        "system": submission.system,
        "system_version": submission.system_version,
        "settings": submission.settings,
        "dataset": submission.dataset,
        **{column: getattr(submission, column) for column in NAMES.values()},
        **pinned_columns(submission.binding),
        "demonstrations": {form: shots.digest for form, shots in submission.shots.items()},
        "provenance": submission.provenance,
    }
