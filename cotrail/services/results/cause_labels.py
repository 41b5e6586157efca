"""Labels by hand of the causes of wrong answers: answers are sampled to be labelled, and labels are stored at once."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.errors import InputError
from cotrail.evaluation.causes.cause import Cause as Cause
from cotrail.evaluation.causes.cause import CauseLabel as CauseLabel
from cotrail.evaluation.causes.gold_fates import gold_fates
from cotrail.evaluation.metrics.factual_errors import sample
from cotrail.models.commands import annotating
from cotrail.models.queries import annotations
from cotrail.models.queries.annotations import read_cause_labels
from cotrail.models.queries.runs import RunRecord, resolve_run
from cotrail.models.queries.traces import read_question
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.results import causes
from cotrail.services.results.annotations import Size
from cotrail.services.runs.labels import find_run
from cotrail.services.store import open_store, reading, reading_from


class GoldCase(Struct, frozen=True, kw_only=True):
    """A gold paragraph, and its fate in words."""

    name: str
    text: str
    fate: str


class Case(Struct, frozen=True, kw_only=True):
    """A wrong answer for a person to label, with the chain behind it and the fate of its gold paragraphs."""

    wrong: causes.WrongAnswer
    sentences: tuple[str, ...]
    gold: tuple[GoldCase, ...]


class CauseRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wrong answer in an annotation file; `cause` and `note` are for the annotator to fill in.

    by_rule: the cause that the rules found, and facts what it is derived from.
    """

    run: str
    question_id: str
    question: str
    answers: tuple[str, ...]
    answer: str | None
    sentences: tuple[str, ...]
    gold: tuple[GoldCase, ...]
    by_rule: Cause
    facts: str
    cause: Cause | None = None
    note: str = ""


class LabellingSummary(Struct, frozen=True, kw_only=True):
    """An annotator's progress with some wrong answers of a run: how many there are, and how many are labelled."""

    run: str
    annotator: str
    answers: int
    labelled: int


def _case(connection: Connection, run: RunRecord, wrong: causes.WrongAnswer) -> Case:
    record = causes.question_record(run, read_question(connection, run.id, wrong.question_id), right=False)
    return Case(
        wrong=wrong,
        sentences=record.sentences,
        gold=tuple(GoldCase(name=fate.name, text=fate.gold.text, fate=fate.words) for fate in gold_fates(record)),
    )


def rows_of(run_id: str, cases: Iterable[Case], labels: Iterable[CauseLabel]) -> list[CauseRow]:
    """The answers to label as rows of a file, with the annotator's labels so far."""
    said = {label.question_id: label for label in labels}
    return [_row(run_id, case, said.get(case.wrong.question_id)) for case in cases]


def _row(run_id: str, case: Case, label: CauseLabel | None) -> CauseRow:
    wrong = case.wrong
    return CauseRow(
        run=run_id,
        question_id=wrong.question_id,
        question=wrong.question,
        answers=wrong.answers,
        answer=wrong.answer,
        sentences=case.sentences,
        gold=case.gold,
        by_rule=wrong.cause,
        facts=wrong.facts,
        cause=label.cause if label else None,
        note=label.note if label else "",
    )


def checked_labels(
    run_id: str, annotator: str, filled: Mapping[str, CauseRow], wrong: Mapping[str, causes.WrongAnswer]
) -> list[CauseLabel]:
    """The labels of the rows that are filled in; InputError where any row isn't of a wrong answer of this run."""
    seen: dict[str, str] = {}
    for place, row in filled.items():
        if row.run != run_id:
            raise InputError(f"{place}: this is a label of run {row.run!r}, not of {run_id!r}; import it there")
        if row.question_id not in wrong:
            raise InputError(f"{place}: question {row.question_id!r} has no wrong answer; export the file again")
        if row.answer != wrong[row.question_id].answer:
            raise InputError(f"{place}: the answer isn't the one that the run gave; export the file again")
        if "\0" in row.note:
            raise InputError(f"{place}: the note holds a NUL character; remove it")
        before = seen.setdefault(row.question_id, place)
        if before != place:
            raise InputError(f"{place}: the same answer is in {before} already; remove one of them")
    return [
        CauseLabel(question_id=row.question_id, annotator=annotator, cause=row.cause, note=row.note)
        for row in filled.values()
        if row.cause is not None
    ]


def summarize(connection: Connection, run: RunRecord, annotator: str, questions: Iterable[str]) -> LabellingSummary:
    """The annotator's progress with the answers to these questions."""
    asked = set(questions)
    labelled = {label.question_id for label in read_cause_labels(connection, run.id, annotator)} & asked
    return LabellingSummary(run=run.id, annotator=annotator, answers=len(asked), labelled=len(labelled))


@operation("cause_labels.cases", "GET", "/runs/{run}/cases", Scope.READ)
def cases(run: str, *, size: Size = 40, seed: int = 0, follow: causes.Follow = causes.unseen) -> tuple[Case, ...]:
    """Draw wrong answers of a run, for a person to label; the same for the same seed."""
    with reading() as connection:
        record = find_run(connection, run)
        checked = follow(causes.check_questions(connection, record), record.size)
        wrong = [each.wrong for each in checked if each.wrong]
        if not wrong:
            raise InputError(
                f"run {record.id} has no wrong answer to label; `cotrail errors {record.id}` says how it came out"
            )
        drawn = sample((each.question_id for each in wrong), size, seed)
        return tuple(_case(connection, record, each) for each in wrong if each.question_id in drawn)


@operation("cause_labels.labels", "GET", "/runs/{run}/cause-labels", Scope.READ)
def list_labels(run: str, annotator: str | None = None, question: str | None = None) -> tuple[CauseLabel, ...]:
    """List what people say of the causes of a run's wrong answers.

    annotator: only the labels of this one; question: only those of the answer to this one, by its id.
    """
    with reading() as connection:
        return annotations.read_cause_labels(connection, resolve_run(connection, run), annotator, question)


@operation("cause_labels.label", "PUT", "/runs/{run}/cause-labels", Scope.SUBMIT)
def label(run: str, labels: Sequence[CauseLabel]) -> int:
    """Store labels of wrong answers, each in place of its annotator's former one; returns how many these are.

    Refused, all of them, where any is of an answer that isn't wrong.
    """
    with open_store() as engine, engine.begin() as connection:
        record = find_run(connection, run)
        causes.refuse_unless_wrong(connection, record, dict.fromkeys(each.question_id for each in labels))
        annotating.record(connection, record.id, labels)
        return len(labels)


@operation("cause_labels.forget", "DELETE", "/runs/{run}/cause-labels", Scope.SUBMIT, status=200)
def forget(run: str, *, question: str, annotator: str) -> None:
    """Take away an annotator's label of the answer to a question, by its id."""
    with open_store() as engine, engine.begin() as connection:
        annotating.forget(connection, resolve_run(connection, run), CauseLabel, question, annotator=annotator)


@operation("cause_labels.fill_in", "POST", "/runs/{run}/cause-labels/rows", Scope.SUBMIT)
def fill_in(
    run: str, *, annotator: str, rows: Mapping[str, CauseRow], follow: causes.Follow = causes.unseen
) -> LabellingSummary:
    """Store the labels of a file's rows that are filled in, all or none.

    rows: by the place of each in its file, for what is said of those that can't be used.
    """
    with open_store() as engine:
        with reading() as connection:
            record = find_run(connection, run)
            checked = follow(causes.check_questions(connection, record), record.size)
            wrong = {each.wrong.question_id: each.wrong for each in checked if each.wrong}
        labels = checked_labels(record.id, annotator, rows, wrong)
        with engine.begin() as connection:
            annotating.record(connection, record.id, labels)
        with reading_from(engine) as connection:
            return summarize(connection, record, annotator, (row.question_id for row in rows.values()))


@operation("cause_labels.summary", "POST", "/runs/{run}/cause-labels/summary", Scope.READ)
def summary(run: str, *, annotator: str, questions: Sequence[str]) -> LabellingSummary:
    """Say how far an annotator is with the answers to these questions."""
    with reading() as connection:
        return summarize(connection, find_run(connection, run), annotator, questions)
