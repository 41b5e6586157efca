"""What people say of the sentences of chains of thought: which there are to judge, and their marks."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from sqlalchemy import Connection, delete, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from cotrail.core.paragraphs import Paragraph
from cotrail.errors import UnknownNameError
from cotrail.evaluation.metrics.factual_errors import AnnotatedChain, SentenceMark, sentences_of
from models.queries.progress import RunRecord, read_run
from models.queries.traces import TracedQuestion, read_question
from models.schema.tables import QuestionStatus, annotations, questions


class Chain(Struct, frozen=True, kw_only=True):
    """A finished question's chain of thought, to be judged.

    paragraphs: for each sentence those that were there when it was written, the pinned passage first.
    """

    question_id: str
    question: str
    sentences: tuple[str, ...]
    paragraphs: tuple[tuple[Paragraph, ...], ...]


def question_ids(connection: Connection, run_id: str) -> tuple[str, ...]:
    """The ids of all questions of a run, in their order."""
    of_run = select(questions.c.key).where(questions.c.run_id == run_id).order_by(questions.c.position)
    return tuple(connection.execute(of_run).scalars())


def read_chains(connection: Connection, record: RunRecord, keys: Iterable[str]) -> Iterator[Chain]:
    """The chains of those of the questions that are finished and have one."""
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
    """The sentences of a finished question's chain: its own, else the one that its reader wrote; empty without any."""
    if question.status != QuestionStatus.FINISHED:
        return ()
    if question.sentences or record.settings["reading"]["reader"] != "cot":
        return question.sentences
    written = [step.generated.text for step in question.steps if step.kind == "read" and step.generated]
    return sentences_of(written[-1]) if written else ()


def read_annotations(connection: Connection, run_id: str) -> tuple[AnnotatedChain, ...]:
    """The chains of the run that somebody has marked, with all marks."""
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
    """The marks of one annotator or of all, by question and sentence."""
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


def record_annotations(connection: Connection, run_id: str, marks: Sequence[SentenceMark]) -> None:
    """Stores marks, each in place of what its annotator said of the sentence before; one that says the same stays.

    UnknownNameError where a question isn't the run's.
    """
    ids = _ids(connection, run_id, {mark.question_id for mark in marks})
    for mark in marks:
        new = insert(annotations).values(
            question_id=ids[mark.question_id],
            position=mark.position,
            annotator=mark.annotator,
            run_id=run_id,
            is_true=mark.is_true,
            note=mark.note,
        )
        says = {"is_true": new.excluded.is_true, "note": new.excluded.note}
        connection.execute(
            new.on_conflict_do_update(
                index_elements=[annotations.c.question_id, annotations.c.position, annotations.c.annotator],
                set_={**says, "created_at": func.now()},
                where=or_(*(annotations.c[name] != value for name, value in says.items())),
            )
        )


def forget_annotation(connection: Connection, run_id: str, mark: SentenceMark) -> None:
    """Takes back what an annotator said of a sentence."""
    [question_id] = _ids(connection, run_id, {mark.question_id}).values()
    connection.execute(
        delete(annotations).where(
            annotations.c.question_id == question_id,
            annotations.c.position == mark.position,
            annotations.c.annotator == mark.annotator,
        )
    )


def _paragraphs_before(question: TracedQuestion, position: int) -> tuple[Paragraph, ...]:
    """What was there when the sentence was written; all paragraphs where no step of its own wrote it."""
    written = [
        step.sequence
        for step in question.steps
        if step.kind == "reason" and step.sentences == position and step.generated
        if question.sentences[position : position + 1] == (step.generated.text,)
    ]
    found = tuple(each.paragraph for each in question.collected if not written or each.step < written[-1])
    if question.pinned is None:
        return found
    pinned = Paragraph(id="", title=question.pinned.title, text=question.pinned.text)
    return (pinned, *(each for each in found if each.digest != pinned.digest))


def _ids(connection: Connection, run_id: str, keys: set[str]) -> dict[str, int]:
    query = select(questions.c.key, questions.c.id).where(questions.c.run_id == run_id, questions.c.key.in_(keys))
    ids = {row.key: row.id for row in connection.execute(query)}
    if unknown := sorted(keys - ids.keys()):
        raise UnknownNameError(f"run {run_id} has no question {unknown[0]!r}; `cotrail export {run_id}` lists them")
    return ids
