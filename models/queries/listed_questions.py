"""The questions of a run, a page at a time: however large the run is, a page is read by an index alone.
Also where one of them stands, and all of them as they were submitted, with what they are judged by.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Row, RowMapping, Select, case, func, select, tuple_, union_all

from cotrail.audit.question_sequence import AskedDigests, AskedQuestions
from cotrail.core.questions import Question, read_kinds
from cotrail.models.records.projects import in_project
from cotrail.models.records.questions import FETCHED_IDS
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import paragraph_sets, questions, runs

FETCHED_ROWS = 1000
"""The number of questions fetched at once: a run may have millions."""


def read_submitted(connection: Connection, run_id: str, keys: Collection[str] = ()) -> list[Question]:
    """Return the questions of a run in their order; those of these ids where any are given."""
    return [
        msgspec.convert({"id": row.key, **{name: row._mapping[name] for name in _JUDGED}, "text": row.text}, Question)
        for row in _rows(connection, run_id, keys)
    ]


def read_asked_digests(connection: Connection, run_id: str) -> AskedQuestions:
    """Return the digests over the questions of a run, from their rows as these are."""
    digests = AskedDigests()
    for row in _rows(connection, run_id):
        digests.add(row.key, row.text, row.pinned, row.answers, row.gold)
    return digests.end()


_JUDGED = ("pinned", "answers", "gold")


def _rows(connection: Connection, run_id: str, keys: Collection[str] = ()) -> Iterator[Row[Any]]:
    columns = (questions.c[name] for name in ("key", "text", *_JUDGED))
    query = select(*columns).where(questions.c.run_id == run_id).order_by(questions.c.position, questions.c.id)
    chosen = query.where(questions.c.key.in_(keys)) if keys else query
    yield from connection.execute(chosen.execution_options(yield_per=FETCHED_ROWS))


class QuestionPlace(Struct, frozen=True, kw_only=True):
    """The number of a question among those of its run, from 1, and the ids of its neighbours; None at the ends."""

    number: int
    questions: int
    previous: str | None
    next: str | None


def read_place(connection: Connection, run_id: str, question_id: int) -> QuestionPlace:
    """Return the place of a question, by its id in the table."""
    place = select(questions.c.position, runs.c.size).join_from(questions, runs, questions.c.run_id == runs.c.id)
    row = connection.execute(place.where(questions.c.id == question_id)).one()
    return QuestionPlace(
        number=row.position + 1,
        questions=row.size,
        previous=_nearest(connection, run_id, question_id, behind=False),
        next=_nearest(connection, run_id, question_id, behind=True),
    )


def _nearest(connection: Connection, run_id: str, question_id: int, *, behind: bool) -> str | None:
    # Ids are given in the order of the positions, and the index of a run's questions by status ends with them.
    number, best = questions.c.id, func.min if behind else func.max
    beyond = number > question_id if behind else number < question_id
    of_status = (
        select(best(number).label("id")).where(questions.c.run_id == run_id, questions.c.status == status, beyond)
        for status in QuestionStatus
    )
    nearest = select(best(union_all(*of_status).subquery().c.id)).scalar_subquery()
    return connection.execute(select(questions.c.key).where(number == nearest)).scalar()


_SHOWN = tuple(
    questions.c[name]
    for name in ("id", "position", "key", "text", "kind", "status", "answer", "ended_by", "reason", "finished_at")
)


def list_questions(
    connection: Connection, run_id: str, *, statuses: Collection[QuestionStatus], limit: int, after: int | None = None
) -> list[RowMapping]:
    """Return rows of a run's questions of these statuses in their order, at most `limit`, behind that of id `after`."""
    return list(connection.execute(page_of(_SHOWN, run_id, statuses, limit, after)).mappings())


def page_of(
    columns: Sequence[ColumnElement[Any]],
    run_id: str,
    statuses: Collection[QuestionStatus],
    limit: int,
    after: int | None,
    *conditions: ColumnElement[bool],
) -> Select[Any]:
    """Select these columns, the id among them, of a page of a run's questions of these statuses.

    Ids are given in the order of the positions, and the index of a run's questions by status ends with them.
    """
    pages = []
    for status in statuses:
        chosen = select(*columns).where(questions.c.run_id == run_id, questions.c.status == status, *conditions)
        behind = chosen if after is None else chosen.where(questions.c.id > after)
        pages.append(behind.order_by(questions.c.id).limit(limit).subquery().select())
    page = union_all(*pages).subquery()
    return page.select().order_by(page.c.id).limit(limit)


class AskedQuestion(Struct, frozen=True, kw_only=True):
    """A question of a run.

    key: its id in the dataset; kinds: those that the dataset counts it among.
    ended_by: what ended it (`cotrail.core.history`); empty where nothing did, or a person.
    """

    key: str
    text: str
    kinds: Mapping[str, str]
    status: str
    ended_by: str = ""

    @property
    def has_ended(self) -> bool:
        """Return whether it has an answer, or failed."""
        return self.status in (QuestionStatus.FINISHED, QuestionStatus.FAILED)


def read_asked(connection: Connection, run_id: str) -> Iterator[AskedQuestion]:
    """Yield the questions of a run by position."""
    columns = (questions.c[name] for name in ("key", "text", "kind", "status", "ended_by"))
    query = select(*columns).where(questions.c.run_id == run_id)
    ordered = query.order_by(questions.c.position, questions.c.id).execution_options(yield_per=FETCHED_IDS)
    for key, text, kind, status, ended_by in connection.execute(ordered):
        yield AskedQuestion(key=key, text=text, kinds=read_kinds(kind), status=status, ended_by=ended_by or "")


def read_answers(connection: Connection, run_id: str, keys: Sequence[str]) -> dict[str, str | None]:
    """Return the answers to these questions by their ids, None where there is none."""
    answer = case((questions.c.status == QuestionStatus.FINISHED, questions.c.answer))
    query = select(questions.c.key, answer).where(questions.c.run_id == run_id, questions.c.key.in_(keys))
    return dict(connection.execute(query).all())


_ASKED = (
    select(
        runs.c.id.label("run"),
        runs.c.created_at,
        runs.c.system,
        runs.c.model_name.label("model"),
        runs.c.corpus,
        questions.c.text.label("question"),
        questions.c.status,
        questions.c.answer,
        questions.c.ended_by,
        questions.c.finished_at,
    )
    .join(questions, questions.c.run_id == runs.c.id)
    .where(runs.c.asked)
    .order_by(runs.c.created_at.desc(), runs.c.id.desc())
)


def list_asked(connection: Connection, limit: int, after: str | None) -> list[RowMapping]:
    """Return the questions, the newest first, at most `limit`, behind that of the run `after`."""
    statement = _ASKED.where(*in_project(connection, runs))
    if after is not None:
        last = select(runs.c.created_at, runs.c.id).where(runs.c.id == after).scalar_subquery()
        statement = statement.where(tuple_(runs.c.created_at, runs.c.id) < last)
    return list(connection.execute(statement.limit(limit)).mappings())


class Place(NamedTuple):
    """The place of a find in the list."""

    step: int
    rank: int


_USES = (
    select(
        questions.c.run_id.label("run"),
        questions.c.key.label("question_id"),
        questions.c.text.label("question"),
        questions.c.status,
        questions.c.collected,
        paragraph_sets.c.step_id,
        paragraph_sets.c.rank,
        paragraph_sets.c.score,
        paragraph_sets.c.query,
        paragraph_sets.c.paragraph_id,
    )
    .join(questions, questions.c.id == paragraph_sets.c.question_id)
    .join(runs, runs.c.id == questions.c.run_id)
    .order_by(paragraph_sets.c.step_id.desc(), paragraph_sets.c.rank.desc())
)


def list_uses(connection: Connection, digest: str, limit: int, after: Place | None) -> list[RowMapping]:
    """Return the finds of the paragraph of this digest, at most `limit`, behind the place `after`."""
    statement = _USES.where(paragraph_sets.c.digest == digest, *in_project(connection, runs))
    if after is not None:
        statement = statement.where(tuple_(paragraph_sets.c.step_id, paragraph_sets.c.rank) < tuple_(*after))
    return list(connection.execute(statement.limit(limit)).mappings())
