"""How far a run is, and why questions of it have no answer, as the command line and an API answer it."""

from collections.abc import Mapping

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.core.budgets import Budgets, Consumed
from cotrail.core.ended_by import UNTIL
from cotrail.core.money import Spent
from cotrail.models.queries.batches import RunBatches
from cotrail.models.queries.progress import Cause as Cause
from cotrail.models.queries.progress import Outage, Progress, read_causes
from cotrail.models.records.blockage import Blockage
from cotrail.models.schema.states import RunState as RunState
from cotrail.services.runs.partial_scores import PartialScore


class RunProgress(Struct, frozen=True, kw_only=True):
    """How far a run is.

    questions: all of them; open to cancelled: those of that status.
    steps: those that are done; seconds: from the start of the first one to the end of the last one.
    outages: the servers that are away and hold the run's steps back.
    blockage: the cause that keeps further questions from being admitted until a person has fixed it.
    spent: on language models; None where none of them is hosted.
    batches: those of a run that is asked in batches.
    budgets: of its questions and of all together; consumed: what its steps took, where the run has a budget.
    ends: the number of questions by what ended them (`cotrail.core.ended_by`), the most frequent first.
    scores: so far, of a watched run.
    """

    run: str
    state: RunState
    questions: int
    open: int
    finished: int
    failed: int
    blocked: int
    cancelled: int
    steps: int
    seconds: float
    outages: tuple[Outage, ...]
    blockage: Blockage | None
    prompt_tokens: int
    cached_prompt_tokens: int
    generated_tokens: int
    ends: Mapping[str, int]
    spent: Spent | None
    budgets: Budgets
    consumed: Consumed
    batches: RunBatches | None = None
    scores: tuple[PartialScore, ...] = ()

    @property
    def statuses(self) -> dict[str, int]:
        """The number of questions by status, without those that no question has."""
        names = ("open", "finished", "failed", "blocked", "cancelled")
        return {name: number for name in names if (number := getattr(self, name))}

    @property
    def done(self) -> int:
        """The number of questions that are finished or failed; a cancelled one isn't done."""
        return self.finished + self.failed

    @property
    def complete(self) -> bool:
        """Whether every question has an answer, apart from those that the run's rule kept from being asked."""
        unasked = sum(number for end, number in self.ends.items() if end.startswith(UNTIL))
        return self.finished + unasked == self.questions


def run_progress(progress: Progress, scores: tuple[PartialScore, ...] = ()) -> RunProgress:
    """The answer to a run's progress as the store has it."""
    return RunProgress(
        run=progress.run,
        state=progress.state,
        questions=progress.total,
        **progress.questions,
        steps=progress.steps,
        seconds=progress.seconds,
        outages=progress.outages,
        blockage=progress.blockage,
        prompt_tokens=progress.tokens("prompt_tokens"),
        cached_prompt_tokens=progress.tokens("cached_prompt_tokens"),
        generated_tokens=progress.tokens("generated_tokens"),
        ends=progress.ends,
        spent=progress.spent,
        budgets=progress.budgets,
        consumed=progress.consumed,
        batches=progress.batches,
        scores=scores,
    )


def read_reasons(connection: Connection, run_id: str) -> tuple[Cause, ...]:
    """Why questions of the run failed or are blocked, the most frequent cause first."""
    return tuple(read_causes(connection, run_id))
