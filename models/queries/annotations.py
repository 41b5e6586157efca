"""Annotations: the sentences of chains of thought that people judge, and their marks.

Labels by hand of the causes of wrong answers.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from sqlalchemy import Connection, select

from cotrail.core.actions.generate import Read, Reason
from cotrail.core.questions import Paragraph
from cotrail.core.results import Generated
from cotrail.evaluation.causes.cause import Cause, CauseLabel
from cotrail.evaluation.metrics.factual_errors import AnnotatedChain, SentenceMark, sentences_of
from cotrail.models.queries.runs import RunRecord, read_run
from cotrail.models.queries.traces import TracedQuestion, read_question
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import annotations, cause_labels, questions


def read_cause_labels(
    connection: Connection, run_id: str, annotator: str | None = None, question: str | None = None
) -> tuple[CauseLabel, ...]:
    """Return the labels of one annotator or of all, of one question, by its id, or of all, by question."""
    columns = (questions.c.key, *(cause_labels.c[name] for name in ("annotator", "cause", "note", "created_at")))
    query = (
        select(*columns)
        .join_from(cause_labels, questions, cause_labels.c.question_id == questions.c.id)
        .where(cause_labels.c.run_id == run_id)
        .order_by(questions.c.position, cause_labels.c.annotator)
    )
    if annotator is not None:
        query = query.where(cause_labels.c.annotator == annotator)
    if question is not None:
        query = query.where(questions.c.run_id == run_id, questions.c.key == question)
    return tuple(
        CauseLabel(
            question_id=row.key,
            annotator=row.annotator,
            cause=Cause(row.cause),
            note=row.note,
            labelled_at=row.created_at,
        )
        for row in connection.execute(query)
    )


class Chain(Struct, frozen=True, kw_only=True):
    """A finished question's chain of thought, for a person to judge.

    paragraphs: for each sentence those collected when it was written, the pinned passage first.
    """

    question_id: str
    question: str
    sentences: tuple[str, ...]
    paragraphs: tuple[tuple[Paragraph, ...], ...]


def question_ids(connection: Connection, run_id: str) -> tuple[str, ...]:
    """Return the ids of all questions of a run, in their order."""
    of_run = select(questions.c.key).where(questions.c.run_id == run_id).order_by(questions.c.position)
    return tuple(connection.execute(of_run).scalars())


def read_chains(connection: Connection, record: RunRecord, keys: Iterable[str]) -> Iterator[Chain]:
    """Yield the chains of those questions that are finished and have one."""
    for key in keys:
        question = read_question(connection, record.id, key)
        sentences = chain_of(record, question)
        if sentences:
            yield Chain(
                question_id=key,
                question=question.text,
                sentences=sentences,
                paragraphs=tuple(_paragraphs_before(question, position) for position in range(len(sentences))),
            )


def chain_of(record: RunRecord, question: TracedQuestion) -> tuple[str, ...]:
    """Return the sentences of a finished question's chain: its own, else its reader's; empty where it has neither."""
    if question.status != QuestionStatus.FINISHED:
        return ()
    if question.sentences or record.settings.get("reading", {}).get("reader") != "cot":  # few systems have a reader
        return question.sentences
    results = [step.result for step in question.steps if isinstance(step.action, Read)]
    texts = [result.text for result in results if isinstance(result, Generated)]
    return sentences_of(texts[-1]) if texts else ()


def read_annotations(connection: Connection, run_id: str) -> tuple[AnnotatedChain, ...]:
    """Return the chains of the run that were marked, with all marks."""
    record, marks = read_run(connection, run_id), read_marks(connection, run_id)
    marked = dict.fromkeys(mark.question_id for mark in marks)
    return tuple(
        AnnotatedChain(
            question_id=key,
            sentences=chain_of(record, read_question(connection, run_id, key)),
            marks=tuple(mark for mark in marks if mark.question_id == key),
        )
        for key in marked
    )


def read_marks(connection: Connection, run_id: str, annotator: str | None = None) -> tuple[SentenceMark, ...]:
    """Return the marks of one annotator or of all, by question and sentence."""
    columns = (annotations.c[name] for name in ("position", "annotator", "is_true", "note"))
    query = (
        select(questions.c.key.label("question_id"), *columns, annotations.c.created_at.label("marked_at"))
        .join_from(annotations, questions, annotations.c.question_id == questions.c.id)
        .where(annotations.c.run_id == run_id)
        .order_by(questions.c.position, annotations.c.position, annotations.c.annotator)
    )
    if annotator is not None:
        query = query.where(annotations.c.annotator == annotator)
    return tuple(SentenceMark(**row) for row in connection.execute(query).mappings())


def _paragraphs_before(question: TracedQuestion, position: int) -> tuple[Paragraph, ...]:
    """Return the paragraphs collected when a sentence was written; all of them where no step wrote it by itself."""
    sentence_steps = [
        step.sequence
        for step in question.steps
        if isinstance(step.action, Reason) and len(step.action.prompt.written) == position
        if isinstance(step.result, Generated)
        if question.sentences[position : position + 1] == (step.result.text,)
    ]
    paragraphs = tuple(
        each.paragraph for each in question.collected if not sentence_steps or each.step < sentence_steps[-1]
    )
    if question.pinned is None:
        return paragraphs
    pinned = Paragraph(id="", title=question.pinned.title, text=question.pinned.text)
    return (pinned, *(each for each in paragraphs if each.digest != pinned.digest))
