"""What people say of runs: which sentences of chains of thought aren't true, and why answers are wrong."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Meta

from cotrail.evaluation.metrics.factual_errors import SentenceMark
from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs.named_runs import find_run, resolve_run
from cotrail.services.store import open_store, reading
from cotrail.services.views import annotations
from cotrail.services.views.annotations import AnnotationSummary, SampledChains, SentenceRow

Size = Annotated[int, Meta(ge=1)]


@operation("GET", "/runs/{run}/chains", Scope.READ)
def chains(run: str, *, size: Size = 40, seed: int = 0) -> SampledChains:
    """Draw chains of thought of a run, for a person to judge their sentences; the same for the same seed."""
    with reading() as connection:
        return annotations.sample_chains(connection, find_run(connection, run), size, seed)


@operation("GET", "/runs/{run}/annotations", Scope.READ)
def marks(run: str, annotator: str | None = None) -> tuple[SentenceMark, ...]:
    """List which sentences of a run people have marked as true or not; annotator: only the marks of this one."""
    with reading() as connection:
        return annotations.read_marks(connection, resolve_run(connection, run), annotator)


@operation("PUT", "/runs/{run}/annotations", Scope.SUBMIT)
def mark(run: str, marks: Sequence[SentenceMark]) -> int:
    """Store marks of sentences, each in place of its annotator's former one; returns how many these are."""
    with open_store() as engine, engine.begin() as connection:
        annotations.record_annotations(connection, resolve_run(connection, run), marks)
        return len(marks)


@operation("DELETE", "/runs/{run}/annotations", Scope.SUBMIT, status=200)
def forget(run: str, *, question: str, position: int, annotator: str) -> None:
    """Take away an annotator's mark of a sentence; question: its id; position: of the sentence in its chain, from 0."""
    with open_store() as engine, engine.begin() as connection:
        taken = SentenceMark(question_id=question, position=position, annotator=annotator, is_true=True)
        annotations.forget_annotation(connection, resolve_run(connection, run), taken)


@operation("POST", "/runs/{run}/annotations/rows", Scope.SUBMIT)
def fill_in(run: str, *, annotator: str, rows: Mapping[str, SentenceRow]) -> AnnotationSummary:
    """Store the marks of a file's rows that are filled in, all or none.

    rows: by where each stands in its file, for what is said of those that can't be used.
    """
    with open_store() as engine:
        with engine.connect() as connection:
            record = find_run(connection, run)
        about = annotations.store_marks(engine, record, annotator, rows)
        with engine.connect() as connection:
            return annotations.summarize(connection, record, annotator, about)


@operation("POST", "/runs/{run}/annotations/summary", Scope.READ)
def summary(run: str, *, annotator: str, questions: Sequence[str]) -> AnnotationSummary:
    """Say how far an annotator is with the chains of these questions, and what all annotators found in the run."""
    with reading() as connection:
        record = find_run(connection, run)
        about = tuple(annotations.read_chains(connection, record, questions))
        return annotations.summarize(connection, record, annotator, about)
