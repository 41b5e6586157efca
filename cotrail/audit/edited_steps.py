"""Steps that people edited, as a verification names them."""

from collections.abc import Iterator

from cotrail.audit.findings import EditedStep
from cotrail.audit.question_rows import QuestionRows
from cotrail.audit.records import UNREADABLE, number, text
from cotrail.audit.referenced_contents import edit_of


def edited_steps(rows: QuestionRows) -> Iterator[EditedStep]:
    """Find those of a question; one whose edit can't be read is named by a finding instead."""
    key = text(rows.question, "key")
    for each in rows.steps:
        try:
            edit = edit_of(each.step)
        except UNREADABLE:
            continue
        if edit is not None:
            yield EditedStep(question=key, step=number(each.step, "sequence"), edit=edit.words)
