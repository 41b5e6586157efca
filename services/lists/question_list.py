"""The list of a run's questions: a page of it."""

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, RowMapping

from cotrail.core.ended_by import by_failure
from cotrail.core.question_kinds import read_kinds
from cotrail.core.results import Failure
from cotrail.models.queries.listed_questions import list_questions
from cotrail.models.queries.runs import resolve_run
from cotrail.models.queries.traces import find_question
from cotrail.models.schema.states import QuestionStatus as QuestionStatus


class ListedQuestion(Struct, frozen=True, kw_only=True):
    """A question in a list.

    number: its place in the run, from 1; reason: why it failed or is blocked.
    ended_by: what ended it (`cotrail.core.ended_by`); empty where nothing did. finished_at: when.
    """

    number: int
    question_id: str
    question: str
    kinds: dict[str, str]
    status: QuestionStatus
    answer: str | None
    reason: Failure | None
    ended_by: str
    finished_at: datetime | None


class QuestionListPage(Struct, frozen=True, kw_only=True):
    """Questions of a run in their order; after: names the page that follows, None where none does."""

    run: str
    questions: tuple[ListedQuestion, ...]
    after: str | None


def read_question_page(
    connection: Connection, run: str, *, statuses: Sequence[QuestionStatus] = (), limit: int, after: str | None = None
) -> QuestionListPage:
    """A page of a run's questions, of any of these statuses, or of all; it begins behind the question `after`.

    Raises UnknownNameError.
    """
    run_id = resolve_run(connection, run)
    behind = None if after is None else find_question(connection, run_id, after)
    chosen = statuses or tuple(QuestionStatus)
    rows = list_questions(connection, run_id, statuses=chosen, limit=limit + 1, after=behind)
    page, more = rows[:limit], len(rows) > limit
    return QuestionListPage(run=run_id, questions=tuple(map(_listed, page)), after=page[-1]["key"] if more else None)


def _listed(row: RowMapping) -> ListedQuestion:
    reason = msgspec.convert(row["reason"], Failure | None)
    failed = by_failure(reason) if reason and row["status"] == QuestionStatus.FAILED else ""
    return ListedQuestion(
        number=row["position"] + 1,
        question_id=row["key"],
        question=row["text"],
        kinds=dict(read_kinds(row["kind"])),
        status=QuestionStatus(row["status"]),
        answer=row["answer"],
        reason=reason,
        ended_by=row["ended_by"] or failed,
        finished_at=row["finished_at"],
    )
