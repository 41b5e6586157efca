"""Annotations of chains of thought: sentences are sampled to be judged, and marks are stored."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from sqlalchemy import Connection, Engine

from cotrail.common.humanize import count
from cotrail.errors import InputError
from cotrail.evaluation.metrics.factual_errors import SentenceMark as SentenceMark
from cotrail.evaluation.metrics.factual_errors import facts, factual_errors, sample
from cotrail.models.commands.annotating import forget_annotation as forget_annotation
from cotrail.models.commands.annotating import record_annotations as record_annotations
from cotrail.models.queries.annotations import Chain as Chain
from cotrail.models.queries.annotations import question_ids, read_annotations
from cotrail.models.queries.annotations import read_chains as read_chains
from cotrail.models.queries.annotations import read_marks as read_marks
from cotrail.models.queries.runs import RunRecord

Place = tuple[str, int]
"""A sentence's question id, and its position in the chain."""


class SentenceRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sentence in an annotation file; `is_true` is for the annotator to fill in."""

    run: str
    question_id: str
    question: str
    position: int
    sentence: str
    is_true: bool | None = None
    note: str = ""
    paragraphs: tuple[dict[str, str], ...] = ()


class SampledChains(Struct, frozen=True, kw_only=True):
    """The chains of the sampled questions; left_out: how many of these have no finished chain."""

    chains: tuple[Chain, ...]
    left_out: int


class AnnotationSummary(Struct, frozen=True, kw_only=True):
    """An annotator's progress with some chains of a run, and the findings of all annotators in it.

    sentences: those to judge in the chains; marked: those that the annotator has marked.
    judged: the run's chains with any mark; erroneous: those of them with a factual error.
    """

    run: str
    annotator: str
    chains: int
    sentences: int
    marked: int
    judged: int
    erroneous: int


def sample_chains(connection: Connection, record: RunRecord, size: int, seed: int) -> SampledChains:
    """The chains of as many questions, drawn by the seed; InputError where there is none to judge."""
    keys = question_ids(connection, record.id)
    questions = sample(keys, size, seed)
    chains = tuple(read_chains(connection, record, [key for key in keys if key in questions]))
    if not chains:
        raise InputError(
            f"there is no chain of thought to judge in run {record.id}: the "
            f"{count(len(questions), 'sampled question')} either isn't finished or was answered without one; wait for "
            "the run, or annotate one of IRCoT or with the reader `cot`"
        )
    return SampledChains(chains=chains, left_out=len(questions) - len(chains))


def store_marks(engine: Engine, record: RunRecord, annotator: str, filled: Mapping[str, SentenceRow]) -> list[Chain]:
    """Stores the marks of rows that were filled in, all or none; returns the chains that the rows are about.

    filled: the rows by where each stands, for errors.
    """
    with engine.connect() as connection:
        questions = set(question_ids(connection, record.id))
        marked = {row.question_id for row in filled.values()} & questions
        chains = {chain.question_id: chain for chain in read_chains(connection, record, marked)}
    marks = checked_marks(record.id, annotator, filled, questions, chains)
    with engine.begin() as connection:
        record_annotations(connection, record.id, marks)
    return list(chains.values())


def summarize(connection: Connection, record: RunRecord, annotator: str, chains: Sequence[Chain]) -> AnnotationSummary:
    """The annotator's progress with these chains, and the findings of all annotators in the run."""
    places = {(chain.question_id, position) for chain in chains for position in facts(chain.sentences)}
    marked = {(mark.question_id, mark.position) for mark in read_marks(connection, record.id, annotator)} & places
    errors = factual_errors(read_annotations(connection, record.id))
    return AnnotationSummary(
        run=record.id,
        annotator=annotator,
        chains=len(chains),
        sentences=len(places),
        marked=len(marked),
        judged=len(errors),
        erroneous=sum(errors.values()),
    )


def rows_of(run_id: str, chains: Sequence[Chain], marks: Iterable[SentenceMark]) -> Iterator[SentenceRow]:
    """The sentences to be judged as rows of a file, with the annotator's marks so far."""
    said = {(mark.question_id, mark.position): mark for mark in marks}
    for chain in chains:
        for position in facts(chain.sentences):
            mark = said.get((chain.question_id, position))
            yield SentenceRow(
                run=run_id,
                question_id=chain.question_id,
                question=chain.question,
                position=position,
                sentence=chain.sentences[position],
                is_true=None if mark is None else mark.is_true,
                note="" if mark is None else mark.note,
                paragraphs=tuple({"title": each.title, "text": each.text} for each in chain.paragraphs[position]),
            )


def checked_marks(
    run_id: str, annotator: str, filled: Mapping[str, SentenceRow], questions: set[str], chains: Mapping[str, Chain]
) -> list[SentenceMark]:
    """The marks of the rows that are filled in; InputError where any row, filled in or not, isn't of this run.

    questions: the ids of the run's questions; chains: those of the questions that have one.
    """
    seen: dict[Place, str] = {}
    for place, row in filled.items():
        if row.run != run_id:
            raise InputError(f"{place}: this is a mark of run {row.run!r}, not of {run_id!r}; import it there")
        if row.question_id not in questions:
            raise InputError(f"{place}: run {run_id} has no question {row.question_id!r}; export the file again")
        _check_sentence(place, row, chains.get(row.question_id))
        if "\0" in row.note:
            raise InputError(f"{place}: the note holds a NUL character; remove it")
        before = seen.setdefault((row.question_id, row.position), place)
        if before != place:
            raise InputError(f"{place}: the same sentence is in {before} already; remove one of them")
    return [
        SentenceMark(
            question_id=row.question_id,
            position=row.position,
            annotator=annotator,
            is_true=row.is_true,
            note=row.note,
        )
        for row in filled.values()
        if row.is_true is not None
    ]


def _check_sentence(place: str, row: SentenceRow, chain: Chain | None) -> None:
    if chain is None:
        raise InputError(f"{place}: question {row.question_id!r} has no finished chain of thought; wait for the run")
    positions = facts(chain.sentences)
    if row.position not in positions:
        raise InputError(
            f"{place}: question {row.question_id!r} has {count(len(positions), 'sentence')} to judge, at positions "
            f"from 0; there is none at {row.position}"
        )
    if row.sentence != chain.sentences[row.position]:
        raise InputError(f"{place}: the sentence isn't the one that the run wrote; export the file again")
