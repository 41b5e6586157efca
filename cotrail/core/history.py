"""The history of a question: the steps that are recorded, and what follows them."""

from msgspec import Struct

from cotrail.core.results import Failure, Result
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


class Next(Struct, frozen=True):
    """The steps that follow; none while the system waits for recorded ones to end."""

    steps: tuple[Step, ...]


class Finished(Struct, frozen=True):
    """The system returned its answer."""

    answer: Answer


class Failed(Struct, frozen=True):
    """A step failed and the system didn't catch it."""

    failure: Failure
