"""The list of questions that were asked alone: a page of it."""

from datetime import datetime

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.models.queries.asked_runs import list_asked
from cotrail.models.queries.runs import resolve_run
from cotrail.models.schema.states import QuestionStatus


class ListedAsk(Struct, frozen=True, kw_only=True):
    """A question that was asked alone, as the run of that id; ended_by: what ended it, None where nothing did."""

    run: str
    created_at: datetime
    system: str
    model: str
    corpus: str | None
    question: str
    status: QuestionStatus
    answer: str | None
    ended_by: str | None
    finished_at: datetime | None


class AskedPage(Struct, frozen=True, kw_only=True):
    """Questions, the newest first; after: names the page that follows, None where none does."""

    questions: tuple[ListedAsk, ...]
    after: str | None


def read_asked_page(connection: Connection, limit: int, after: str | None = None) -> AskedPage:
    """A page of the questions that were asked alone, behind that of the run `after`; raises UnknownNameError."""
    behind = None if after is None else resolve_run(connection, after)
    rows = list_asked(connection, limit + 1, behind)
    page = tuple(ListedAsk(**row) for row in rows[:limit])
    return AskedPage(questions=page, after=page[-1].run if len(rows) > limit else None)
