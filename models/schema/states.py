"""The states of runs, questions, steps and attempts."""

from enum import StrEnum


class RunState(StrEnum):
    """What a person wants of a run; whether it is finished is seen from its questions."""

    ACTIVE = "active"
    """Steps are claimed and executed."""
    PAUSED = "paused"
    """No step is claimed; those under way are recorded."""
    CANCELLED = "cancelled"
    """For ever; its open questions and their steps are cancelled."""
    PRUNED = "pruned"
    """It is being removed for good: some of its rows may be gone already."""


class QuestionStatus(StrEnum):
    """Where a question stands; `open` and `blocked` aren't final, nor is `failed` by `cotrail retry`."""

    OPEN = "open"
    """Steps are to come."""
    FINISHED = "finished"
    """The system returned an answer."""
    FAILED = "failed"
    """A step failed and the system didn't catch it."""
    BLOCKED = "blocked"
    """Record and code disagree, or something is missing; goes on after a person mended it."""
    CANCELLED = "cancelled"
    """Its run was cancelled."""


class StepState(StrEnum):
    """Where a step stands; what has ended never changes again, but for `failed` by `cotrail retry`."""

    WAITING = "waiting"
    """Recorded, and to be admitted: its question was submitted, or is tried again."""
    READY = "ready"
    """Recorded, and in its queue or about to be."""
    RUNNING = "running"
    """Claimed by a worker under a lease."""
    FINISHED = "finished"
    """Its result is recorded."""
    FAILED = "failed"
    """Its failure is recorded, as data for the system."""
    CANCELLED = "cancelled"
    """Its run was cancelled before it ended."""
    BLOCKED = "blocked"
    """Its question is blocked: nobody looks at it until a person has that tried again."""


UNENDED_QUESTIONS = (QuestionStatus.OPEN, QuestionStatus.BLOCKED)
UNENDED_STEPS = (StepState.WAITING, StepState.READY, StepState.RUNNING, StepState.BLOCKED)


class AttemptOutcome(StrEnum):
    """How one execution of a step ended; NULL while it is under way."""

    FINISHED = "finished"
    """Its result became the step's."""
    FAILED = "failed"
    """Its failure became the step's."""
    RETRIED = "retried"
    """It failed in a way that another try may mend."""
    EXPIRED = "expired"
    """Its worker gave no sign of life until the lease ran out; what comes after another's claim is dropped."""
    RELEASED = "released"
    """Its worker shut down and gave the step back."""
    BLOCKED = "blocked"
    """What it needs isn't there; the question waits."""
    UNAVAILABLE = "unavailable"
    """A server that it needs didn't answer, which is nothing against the step."""
    CANCELLED = "cancelled"
    """Its run was cancelled meanwhile."""
