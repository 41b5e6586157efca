"""Result of a verification: the number of rows checked, and the findings."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

MOST_FINDINGS = 1000
"""Maximum number of findings; a verification stops there."""

LONGEST_QUOTE = 500
"""Maximum characters of a text that a finding quotes."""

Change = Literal["changed", "removed", "added", "reordered"]


class Finding(Struct, frozen=True, kw_only=True):
    """A row that differs from what was recorded.

    table, what: the row's table, and what happened to it; detail: the evidence for it, for a reader.
    run, question, step, epoch, rank, digest: which row: the run's id, the question's key, the step's sequence, the
        attempt's epoch, the rank in a paragraph set, the digest that names content.
    column: which column, where that can be determined.
    perhaps: other tables whose rows may have been changed instead, where the digests can't tell them apart.
    """

    table: str
    what: Change
    detail: str
    run: str | None = None
    question: str | None = None
    step: int | None = None
    epoch: int | None = None
    rank: int | None = None
    digest: str | None = None
    column: str | None = None
    perhaps: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("detail", "run", "question", "digest"):
            value = getattr(self, name)
            if value is not None and len(value) > LONGEST_QUOTE:
                force_setattr(self, name, f"{value[:LONGEST_QUOTE]}…")

    def __str__(self) -> str:
        names = ("run", "question", "step", "epoch", "rank", "digest", "column")
        row = ", ".join(f"{name} {value}" for name in names if (value := getattr(self, name)) is not None)
        return (
            f"{self.table}: {row}: {self.what}: {self.detail}" if row else f"{self.table}: {self.what}: {self.detail}"
        )


class EditedStep(Struct, frozen=True, kw_only=True):
    """A step that a person edited: its question's key, its sequence, and what was done by whom."""

    question: str
    step: int
    edit: str


class Verification(Struct, frozen=True, kw_only=True):
    """Outcome of verifying a run's audit trail.

    digest: the run's, computed from its rows; None while questions are open. closed: whether the record has it too, so
        that all of it is sealed.
    records: how many rows were checked, by table.
    open_questions, open_steps: how many haven't ended, so that no digest seals them yet.
    plan: the digest of the plan that was sealed with the run; None where it was submitted before plans were recorded.
    findings: in the order of the records, at most `MOST_FINDINGS` and one that says that there are more.
    edits: the steps that people edited, at most `MOST_FINDINGS` of them.
    imported: whether it came from a file: its seals say how it was imported, and not that it happened so.
    """

    run: str
    digest: str | None
    closed: bool
    records: dict[str, int]
    open_questions: int
    open_steps: int
    plan: str | None
    findings: tuple[Finding, ...]
    edits: tuple[EditedStep, ...] = ()
    imported: bool = False


class CheckedQuestion(Struct, frozen=True, kw_only=True):
    """Result of checking a question.

    misplaced: its row doesn't agree with its run or its position. vague: its digest doesn't match, and no changed
    column explains it.
    """

    findings: tuple[Finding, ...]
    misplaced: bool = False
    vague: bool = False
