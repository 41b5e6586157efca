"""The history of a question: the steps that are recorded, and what follows them."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from cotrail.core.budgets import Budgets, Consumed, priced
from cotrail.core.money import ModelPrice, Usage
from cotrail.core.results import Failure, Generated, Result
from cotrail.core.system import Action, Answer

FORK, GIVEN = "fork", "fork, as given"
"""The worker named by a step that a fork took over: one that the fork's settings ask for in the same way, and one that
was taken over whatever they ask for."""

Outcome = Result | Failure
"""How a step ended."""


class Recorded(Struct, frozen=True, kw_only=True):
    """A step that was recorded; `outcome` is None until it has ended.

    A step whose stored result can't be read any more is recorded with `unreadable` saying why.
    given: whether it was taken over from another run whatever the code would have asked for: only its kind must agree.
    """

    kind: str
    fingerprint: str
    outcome: Outcome | None = None
    unreadable: str | None = None
    given: bool = False


class Step(Struct, frozen=True, kw_only=True):
    """A step to record: its place in the question, from 0, and its action."""

    sequence: int
    action: Action
    fingerprint: str


class Halt(Struct, frozen=True, kw_only=True):
    """Where a budget ended a question: after how many of its steps, and which limit it was."""

    after: int
    limit: str


class Raised(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A larger budget with which a question went on that one had ended.

    budgets: the run's since then; limit: which had ended it. after, until: the numbers of its steps from which on and
    before which it answered then; None where it hadn't begun.
    """

    budgets: Budgets
    limit: str
    after: int | None = None
    until: int | None = None

    @property
    def took(self) -> int:
        """How many steps it had answered by."""
        return 0 if self.after is None or self.until is None else self.until - self.after


class Halts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where budgets ended a question.

    after: behind how many of its steps; None where none does, or it continues. limit: which limit it was.
    raised: the ends from which it has gone on.
    """

    after: int | None = None
    limit: str = ""
    raised: tuple[Raised, ...] = ()

    @property
    def passed(self) -> int:
        """How many steps it took to answer at ends from which it has gone on, and which its system doesn't see."""
        return sum(each.took for each in self.raised)

    @property
    def halt(self) -> Halt | None:
        """Where a budget ends it, among the steps that its system sees."""
        return None if self.after is None else Halt(after=self.after - self.passed, limit=self.limit)

    def seen_by_system(self, records: Sequence[Recorded]) -> Sequence[Recorded]:
        """The records that its system sees."""
        for each in reversed(self.raised):
            if each.took:
                records = (*records[: each.after], *records[each.until :])
        return records


class Next(Struct, frozen=True):
    """The steps that follow; none while the system waits for recorded ones to end."""

    steps: tuple[Step, ...]


class Finished(Struct, frozen=True):
    """The system returned its answer."""

    answer: Answer


class Failed(Struct, frozen=True):
    """A step failed and the system didn't catch it."""

    failure: Failure


# What ended steps took of budgets.


def consumed_by(outcome: Outcome, milliseconds: float, price: ModelPrice | None) -> Consumed:
    """What an ended step took; price: of the model that it asked, None where that costs nothing."""
    written = outcome.written if isinstance(outcome, Failure) else outcome
    return priced(usage_of(written) if isinstance(written, Generated) else Usage(), milliseconds, price)


def usage_of(result: Generated) -> Usage:
    """The tokens of a call."""
    return Usage(
        calls=1,
        input_tokens=result.prompt_tokens,
        cached_tokens=result.cached_prompt_tokens,
        cache_written_tokens=result.cache_written_tokens,
        output_tokens=result.generated_tokens,
        thought_tokens=result.thought_tokens,
        estimated=int(result.estimated),
    )


# What ended a question: one short text with every answer, so that tables can count and compare it.

ANSWER = "answer"
LIMIT, FAILURE = "limit: ", "failure: "
"""What precedes the name of a limit, and the class of an error."""
UNTIL = "until: "
"""What precedes the rule by which a run stopped before it asked the question."""


def ended_by(outcome: Finished | Failed) -> str:
    """`answer` where the system came to its end, `limit: sentences` where a limit ended it, `failure: StepError`."""
    if isinstance(outcome, Failed):
        return by_failure(outcome.failure)
    return f"{LIMIT}{outcome.answer.limit}" if outcome.answer.limit else ANSWER


def by_failure(failure: Failure) -> str:
    """The same of a question that failed."""
    return f"{FAILURE}{failure.type}"


def shown_ends(ends: Mapping[str, int]) -> str:
    """What ended questions, by their number: `16 answer, 3 limit: sentences, 1 failure: StepError`."""
    return ", ".join(f"{number:,} {end}" for end, number in ends.items())


class Irregularities(Struct, frozen=True, kw_only=True):
    """Numbers of a run's questions, and of its steps.

    unended: questions that are open; cancelled: by a person, and not by a limit; unasked: those of them without any
        step begun. retried: that had failed and were opened again (`cotrail.models.commands.retrying`).
    taken_over: steps that a fork has from its origin.
    """

    unended: int = 0
    blocked: int = 0
    failed: int = 0
    cancelled: int = 0
    unasked: int = 0
    retried: int = 0
    taken_over: int = 0
