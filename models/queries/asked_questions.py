"""The questions of a run and where they stand, without what happened to them."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from sqlalchemy import Connection, RowMapping, case, select, tuple_

from cotrail.core.questions import read_kinds
from cotrail.models.records.projects import in_project
from cotrail.models.records.questions import FETCHED_IDS
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import questions, runs


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

    @property
    def is_left_over(self) -> bool:
        """Return whether it was never asked to its end: a rule, a budget or a person left it over."""
        return self.status == QuestionStatus.CANCELLED


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


# The questions that were asked alone, a page at a time.

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
