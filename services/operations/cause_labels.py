"""What people say of the causes of wrong answers."""

from collections.abc import Mapping, Sequence

from cotrail.evaluation.causes.cause_label import CauseLabel
from cotrail.services.access.actor import Scope
from cotrail.services.operations.annotations import Size
from cotrail.services.operations.errors import Follow, unseen
from cotrail.services.operations.operation import operation
from cotrail.services.runs.named_runs import find_run, resolve_run
from cotrail.services.store import open_store, reading
from cotrail.services.views import cause_labelling
from cotrail.services.views.cause_labelling import Case, CauseRow, LabellingSummary
from cotrail.services.views.causes import check_questions


@operation("GET", "/runs/{run}/cases", Scope.READ)
def cases(run: str, *, size: Size = 40, seed: int = 0, follow: Follow = unseen) -> tuple[Case, ...]:
    """Draw wrong answers of a run, for a person to label; the same for the same seed."""
    with reading() as connection:
        record = find_run(connection, run)
        checked = follow(check_questions(connection, record), record.size)
        return cause_labelling.sample_cases(connection, record, checked, size, seed)


@operation("GET", "/runs/{run}/cause-labels", Scope.READ)
def labels(run: str, annotator: str | None = None) -> tuple[CauseLabel, ...]:
    """List what people say of the causes of a run's wrong answers; annotator: only the labels of this one."""
    with reading() as connection:
        return cause_labelling.read_cause_labels(connection, resolve_run(connection, run), annotator)


@operation("PUT", "/runs/{run}/cause-labels", Scope.SUBMIT)
def label(run: str, labels: Sequence[CauseLabel]) -> int:
    """Store labels, each in place of its annotator's former one; returns how many these are."""
    with open_store() as engine, engine.begin() as connection:
        cause_labelling.record_cause_labels(connection, resolve_run(connection, run), labels)
        return len(labels)


@operation("DELETE", "/runs/{run}/cause-labels", Scope.SUBMIT, status=200)
def forget(run: str, *, question: str, annotator: str) -> None:
    """Take away an annotator's label of the answer to a question, by its id."""
    with open_store() as engine, engine.begin() as connection:
        cause_labelling.forget_cause_label(connection, resolve_run(connection, run), question, annotator)


@operation("POST", "/runs/{run}/cause-labels/rows", Scope.SUBMIT)
def fill_in(run: str, *, annotator: str, rows: Mapping[str, CauseRow], follow: Follow = unseen) -> LabellingSummary:
    """Store the labels of a file's rows that are filled in, all or none.

    rows: by where each stands in its file, for what is said of those that can't be used.
    """
    with open_store() as engine:
        with reading() as connection:
            record = find_run(connection, run)
            checked = follow(check_questions(connection, record), record.size)
            wrong = [each.wrong for each in checked if each.wrong]
        cause_labelling.store_labels(engine, record, annotator, rows, wrong)
        with engine.connect() as connection:
            about = (row.question_id for row in rows.values())
            return cause_labelling.summarize(connection, record, annotator, about)


@operation("POST", "/runs/{run}/cause-labels/summary", Scope.READ)
def summary(run: str, *, annotator: str, questions: Sequence[str]) -> LabellingSummary:
    """Say how far an annotator is with the answers to these questions."""
    with reading() as connection:
        return cause_labelling.summarize(connection, find_run(connection, run), annotator, questions)
