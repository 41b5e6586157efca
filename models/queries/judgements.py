"""Judgements: the runs that grade a run's answers, and what they say of each question."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, RowMapping, func, select

from cotrail.core.questions import GoldParagraph, JudgedAnswer, Paragraph, Question, read_kinds
from cotrail.core.results import Failure
from cotrail.models.queries.runs import RunRecord, read_run
from cotrail.models.records.contents import ParagraphCache
from cotrail.models.records.projects import in_project
from cotrail.models.records.questions import read_question_ids
from cotrail.models.schema.states import DesiredState, QuestionStatus
from cotrail.models.schema.tables import questions, runs

JUDGE = "judge"
"""The system whose runs judge."""


class JudgedQuestion(Struct, frozen=True, kw_only=True):
    """A question of a judged run; answered: whether it has an answer; published: whether its dataset has one.

    asked: whether it was asked to its end, or may yet be: it wasn't cancelled, or left over by a rule or a budget.
    """

    key: str
    text: str
    kinds: dict[str, str]
    answered: bool
    published: bool
    asked: bool = True


class RecordedJudgement(Struct, frozen=True, kw_only=True):
    """A question of a judge's run: how it stands there, and what the judge said, as JSON.

    ended_by: what ended it there, e.g. a limit; empty where nothing has. runs: those whose answers it grades.
    """

    key: str
    status: str
    details: Any
    reason: Failure | None
    ended_by: str
    runs: tuple[str, ...]


def read_judges(connection: Connection, run_id: str) -> Sequence[RunRecord]:
    """Return the runs that judge this one, the oldest first, without those that were cancelled or pruned."""
    ended = (DesiredState.CANCELLED, DesiredState.PRUNED)
    query = (
        select(runs.c.id)
        .where(runs.c.system == JUDGE, runs.c.settings["runs"].contains([run_id]))
        .where(runs.c.desired_state.not_in(ended), *in_project(connection, runs))
        .order_by(runs.c.created_at, runs.c.id)
    )
    return [read_run(connection, judge) for judge in connection.execute(query).scalars()]


def read_judged(connection: Connection, run_id: str) -> list[JudgedQuestion]:
    """Return the questions of a run that is judged, in their order."""
    columns = (questions.c[name] for name in ("key", "text", "kind", "status", "answers"))
    query = select(*columns).where(questions.c.run_id == run_id).order_by(questions.c.position)
    return [
        JudgedQuestion(
            key=row.key,
            text=row.text,
            kinds=read_kinds(row.kind),
            answered=row.status == QuestionStatus.FINISHED,
            published=bool(row.answers),
            asked=row.status != QuestionStatus.CANCELLED,
        )
        for row in connection.execute(query)
    ]


def read_judgements(connection: Connection, judge_id: str, key: str | None = None) -> list[RecordedJudgement]:
    """Return the questions of a judge's run, in their order; key: only the one with this id."""
    first, second = (questions.c.judged[place]["run"].astext.label(name) for place, name in enumerate(("one", "two")))
    columns = (questions.c[name] for name in ("key", "status", "weighing", "reason", "ended_by"))
    query = select(*columns, first, second).where(questions.c.run_id == judge_id).order_by(questions.c.position)
    if key is not None:
        query = query.where(questions.c.key == key)
    return [
        RecordedJudgement(
            key=row.key,
            status=row.status,
            details=row.weighing,
            reason=msgspec.convert(row.reason, Failure | None),
            ended_by=row.ended_by or "",
            runs=tuple(run for run in (row.one, row.two) if run is not None),
        )
        for row in connection.execute(query)
    ]


# The answers of a run as a judge's run asks about them.

CHUNK_QUESTIONS = 500
"""The number of questions read at once."""


def count_unended(connection: Connection, run_id: str) -> int:
    """Return how many questions of a run may still get an answer."""
    unended = questions.c.status.in_((QuestionStatus.OPEN, QuestionStatus.BLOCKED))
    query = select(func.count()).where(questions.c.run_id == run_id, unended)
    return int(connection.execute(query).scalar_one())


def read_keys(connection: Connection, run_id: str) -> dict[str, str]:
    """Return the texts of a run's questions by their keys."""
    query = select(questions.c.key, questions.c.text).where(questions.c.run_id == run_id)
    return {row.key: row.text for row in connection.execute(query)}


def read_judged_answers(connection: Connection, run_id: str, *, chains: bool, paragraphs: bool) -> Iterator[Question]:
    """Yield the finished questions of a run in their order, each with its answer to judge.

    chains, paragraphs: whether the answer has its chain of thought, and the paragraphs that the question collected,
    behind the passage that its dataset gives with it.
    """
    ids, cache = read_question_ids(connection, run_id), ParagraphCache()
    for start in range(0, len(ids), CHUNK_QUESTIONS):
        chunk = ids[start : start + CHUNK_QUESTIONS].tolist()
        finished = questions.c.id.in_(chunk), questions.c.status == QuestionStatus.FINISHED
        query = select(questions).where(*finished).order_by(questions.c.position)
        rows = connection.execute(query).mappings().all()
        digests = (digest for row in rows for digest in row["collected"] or ()) if paragraphs else ()
        known = cache.read(connection, digests)
        for row in rows:
            shown = _passage(row) + tuple(known[each] for each in row["collected"] or () if each in known)
            yield _question(row, chains=chains, shown=shown if paragraphs else ())


def _passage(row: RowMapping) -> tuple[Paragraph, ...]:
    pinned = msgspec.convert(row["pinned"], GoldParagraph | None)
    return () if pinned is None else (Paragraph(id=pinned.id, title=pinned.title, text=pinned.text),)


def _question(row: RowMapping, *, chains: bool, shown: tuple[Paragraph, ...]) -> Question:
    judged = JudgedAnswer(
        run=row["run_id"],
        digest=row["digest"],
        answer=row["answer"] or "",
        sentences=tuple(row["sentences"] or ()) if chains else (),
        paragraphs=tuple({each.digest: each for each in shown}.values()),
    )
    return Question(
        id=row["key"],
        text=row["text"],
        answers=tuple(row["answers"]),
        gold=msgspec.convert(row["gold"], tuple[GoldParagraph, ...]),
        kinds=read_kinds(row["kind"]),
        judged=(judged,),
    )
