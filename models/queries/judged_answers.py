"""The answers of a run as a judge's run asks about them."""

from collections.abc import Iterator

import msgspec
from sqlalchemy import Connection, RowMapping, func, select

from cotrail.core.paragraphs import Paragraph
from cotrail.core.questions import GoldParagraph, JudgedAnswer, Question, read_kinds
from cotrail.models.records.paragraphs import ParagraphCache
from cotrail.models.records.questions import read_question_ids
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import questions

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


def read_judged(connection: Connection, run_id: str, *, chains: bool, paragraphs: bool) -> Iterator[Question]:
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
