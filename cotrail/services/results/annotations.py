"""Annotations of chains of thought: sentences are sampled to be judged, and marks are stored."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Generic, TypeVar

from msgspec import Meta, Struct
from sqlalchemy import Connection

from cotrail.common.humanize import count
from cotrail.errors import InputError
from cotrail.evaluation.metrics.factual_errors import SentenceMark as SentenceMark
from cotrail.evaluation.metrics.factual_errors import facts, factual_errors, sample
from cotrail.models.commands import annotating
from cotrail.models.queries import annotations
from cotrail.models.queries.annotations import Chain as Chain
from cotrail.models.queries.annotations import question_ids, read_annotations, read_chains, read_marks
from cotrail.models.queries.runs import RunRecord, resolve_run
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs.labels import find_run
from cotrail.services.store import open_store, reading, reading_from

T = TypeVar("T")
M = TypeVar("M")


class Marking(Generic[T, M]):
    """Things that a person goes through one after the other, to mark each that isn't marked yet.

    record, forget: store a mark, and take that of a thing away.
    """

    def __init__(self, unmarked: Sequence[T], record: Callable[[M], object], forget: Callable[[T], object]) -> None:
        self._unmarked, self._record, self._forget = unmarked, record, forget
        self._passed = 0

    @property
    def next(self) -> T | None:
        """What is to be marked next; None where nothing is left."""
        return self._unmarked[self._passed] if self.left else None

    @property
    def left(self) -> int:
        """How many are to be marked."""
        return len(self._unmarked) - self._passed

    def skip(self) -> None:
        """Passes on to the next one; this one is left for another time, unless it was marked."""
        self._passed += 1

    def mark(self, mark: M) -> None:
        """Stores the mark of this one, and passes on to the next one."""
        self._record(mark)
        self.skip()

    def undo(self) -> None:
        """Goes back to the one before, if there is one, and takes its mark away."""
        if self._passed:
            self._passed -= 1
            self._forget(self._unmarked[self._passed])


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


def places_in(chains: Iterable[Chain]) -> list[Place]:
    """The sentences of these chains that are to be judged."""
    return [(chain.question_id, position) for chain in chains for position in facts(chain.sentences)]


Size = Annotated[int, Meta(ge=1)]


@operation("annotations.chains", "GET", "/runs/{run}/chains", Scope.READ)
def chains(run: str, *, size: Size = 40, seed: int = 0) -> SampledChains:
    """Draw chains of thought of a run, for a person to judge their sentences; the same for the same seed."""
    # Those of as many questions; InputError where there is none to judge.
    with reading() as connection:
        record = find_run(connection, run)
        keys = question_ids(connection, record.id)
        questions = sample(keys, size, seed)
        chains = tuple(read_chains(connection, record, [key for key in keys if key in questions]))
        if not chains:
            raise InputError(
                f"there is no chain of thought to judge in run {record.id}: of "
                f"{count(len(questions), 'sampled question')} each either isn't finished or was answered without one; "
                "wait for the run, or annotate one of IRCoT or with the reader `cot`"
            )
        return SampledChains(chains=chains, left_out=len(questions) - len(chains))


def summarize(connection: Connection, record: RunRecord, annotator: str, chains: Sequence[Chain]) -> AnnotationSummary:
    """The annotator's progress with these chains, and the findings of all annotators in the run."""
    places = set(places_in(chains))
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


@operation("annotations.summary", "POST", "/runs/{run}/annotations/summary", Scope.READ)
def summarize_annotations(run: str, *, annotator: str, questions: Sequence[str]) -> AnnotationSummary:
    """Say how far an annotator is with the chains of these questions, and what all annotators found in the run."""
    with reading() as connection:
        record = find_run(connection, run)
        about = tuple(annotations.read_chains(connection, record, questions))
        return summarize(connection, record, annotator, about)


@operation("annotations.fill_in", "POST", "/runs/{run}/annotations/rows", Scope.SUBMIT)
def fill_in(run: str, *, annotator: str, rows: Mapping[str, SentenceRow]) -> AnnotationSummary:
    """Store the marks of a file's rows that are filled in, all or none.

    rows: by the place of each in its file, for what is said of those that can't be used.
    """
    with open_store() as engine:
        with reading_from(engine) as connection:
            record = find_run(connection, run)
            questions = set(question_ids(connection, record.id))
            about = read_chains(connection, record, {row.question_id for row in rows.values()} & questions)
            chains = {chain.question_id: chain for chain in about}
        marks = checked_marks(record.id, annotator, rows, questions, chains)
        with engine.begin() as connection:
            annotating.record(connection, record.id, marks)
        with reading_from(engine) as connection:
            return summarize(connection, record, annotator, list(chains.values()))


def rows_of(run_id: str, chains: Sequence[Chain], marks: Iterable[SentenceMark]) -> Iterator[SentenceRow]:
    """The sentences to be judged as rows of a file, with the annotator's marks so far."""
    said = {(mark.question_id, mark.position): mark for mark in marks}
    of_questions = {chain.question_id: chain for chain in chains}
    for key, position in places_in(chains):
        chain, mark = of_questions[key], said.get((key, position))
        yield SentenceRow(
            run=run_id,
            question_id=key,
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
            question_id=row.question_id, position=row.position, annotator=annotator, is_true=row.is_true, note=row.note
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


@operation("annotations.marks", "GET", "/runs/{run}/annotations", Scope.READ)
def marks(run: str, annotator: str | None = None) -> tuple[SentenceMark, ...]:
    """List which sentences of a run people have marked as true or not; annotator: only the marks of this one."""
    with reading() as connection:
        return annotations.read_marks(connection, resolve_run(connection, run), annotator)


@operation("annotations.mark", "PUT", "/runs/{run}/annotations", Scope.SUBMIT)
def mark(run: str, marks: Sequence[SentenceMark]) -> int:
    """Store marks of sentences, each in place of its annotator's former one; returns how many these are."""
    with open_store() as engine, engine.begin() as connection:
        annotating.record(connection, resolve_run(connection, run), marks)
        return len(marks)


@operation("annotations.forget", "DELETE", "/runs/{run}/annotations", Scope.SUBMIT, status=200)
def forget(run: str, *, question: str, position: int, annotator: str) -> None:
    """Take away an annotator's mark of a sentence; question: its id; position: of the sentence in its chain, from 0."""
    with open_store() as engine, engine.begin() as connection:
        key: dict[str, str | int] = {"position": position, "annotator": annotator}
        annotating.forget(connection, resolve_run(connection, run), SentenceMark, question, **key)
