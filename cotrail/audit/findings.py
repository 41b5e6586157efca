"""What a verification says: what was checked, and what is wrong."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

MOST = 1000
"""How many findings a verification ends at."""

LONGEST = 500
"""How many characters of a text a finding repeats."""

Change = Literal["changed", "removed", "added", "reordered"]


class Finding(Struct, frozen=True, kw_only=True):
    """A row that isn't as it was recorded.

    table, what: the row's table, and what happened to it; detail: how that is known, for a reader.
    run, question, step, epoch, rank, digest: which row: the run's id, the question's key, the step's sequence, the
        attempt's epoch, the rank in a paragraph set, the digest that names content.
    column: which column, where that can be told.
    perhaps: other tables that hold the row if it isn't this one, where they can't be told apart.
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
            if value is not None and len(value) > LONGEST:
                force_setattr(self, name, f"{value[:LONGEST]}…")

    def __str__(self) -> str:
        names = ("run", "question", "step", "epoch", "rank", "digest", "column")
        row = ", ".join(f"{name} {value}" for name in names if (value := getattr(self, name)) is not None)
        return (
            f"{self.table}: {row}: {self.what}: {self.detail}" if row else f"{self.table}: {self.what}: {self.detail}"
        )


class Verification(Struct, frozen=True, kw_only=True):
    """A run's audit trail as it was found.

    digest: the run's, computed from its rows; None while questions are open. closed: whether the record has it too, so
        that all of it is sealed.
    records: how many rows were checked, by table.
    open_questions, open_steps: how many have not ended, so that nothing seals them yet.
    findings: what is wrong, in the order of the records, at most `MOST` and one that says that there are more.
    """

    run: str
    digest: str | None
    closed: bool
    records: dict[str, int]
    open_questions: int
    open_steps: int
    findings: tuple[Finding, ...]
