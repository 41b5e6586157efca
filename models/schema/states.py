"""The states of runs, questions, steps and attempts."""

from enum import StrEnum


class RunState(StrEnum):
    """The state of a run, as people see it: it follows from what is wanted of it and from its questions.

    It is stored nowhere: `cotrail.models.queries.runs.state_of` and the view `run_states` say it.
    """

    RUNNING = "running"
    """It has open questions."""
    PAUSED = "paused"
    """The same, and none of their steps is begun."""
    BLOCKED = "blocked"
    """It can't continue: a person has to fix what blocks its questions."""
    FINISHED = "finished"
    """All its questions have ended."""
    CANCELLED = "cancelled"
    """Final; its open questions and their steps are cancelled."""
    PRUNED = "pruned"
    """Final; it is being removed."""


DEFAULT_PROJECT = "default"
"""The project of what was submitted on the command line, or before there were projects."""


class DesiredState(StrEnum):
    """What a person wants of a run: `runs.desired_state`."""

    ACTIVE = "active"
    """Its steps are claimed and executed."""
    PAUSED = "paused"
    """None of its steps is claimed; results of those under way are recorded."""
    CANCELLED = "cancelled"
    """Final; its open questions and their steps are cancelled."""
    PRUNED = "pruned"
    """Final; it is being removed, and some of its rows may be gone already."""


class QuestionStatus(StrEnum):
    """The status of a question. `open` and `blocked` aren't final; `cotrail retry` opens `failed` ones again."""

    OPEN = "open"
    """It has steps to come."""
    FINISHED = "finished"
    """The system returned an answer."""
    FAILED = "failed"
    """A step failed and the system didn't catch it."""
    BLOCKED = "blocked"
    """Record and code disagree, or something is missing: a person has to fix it."""
    CANCELLED = "cancelled"
    """Its run was cancelled."""


class StepState(StrEnum):
    """The state of a step. An ended step never changes again, except that `cotrail retry` opens `failed` ones."""

    WAITING = "waiting"
    """Recorded, and waiting for admission: its question was submitted, or opened again."""
    READY = "ready"
    """Recorded, and in its queue or about to be."""
    RUNNING = "running"
    """Claimed by a worker under a lease."""
    BATCHED = "batched"
    """Its request waits for a batch, or is in one at its provider; no worker holds it."""
    FINISHED = "finished"
    """Its result is recorded."""
    FAILED = "failed"
    """Its failure is recorded; the system sees it and may continue."""
    CANCELLED = "cancelled"
    """Its run was cancelled before it ended."""
    BLOCKED = "blocked"
    """Its question is blocked; the step is set aside until that is opened again."""


UNENDED_QUESTIONS = (QuestionStatus.OPEN, QuestionStatus.BLOCKED)
UNENDED_STEPS = (StepState.WAITING, StepState.READY, StepState.RUNNING, StepState.BATCHED, StepState.BLOCKED)


class AttemptOutcome(StrEnum):
    """The outcome of one execution of a step; NULL while it is under way."""

    FINISHED = "finished"
    """Its result became the step's."""
    FAILED = "failed"
    """Its failure became the step's."""
    RETRIED = "retried"
    """It failed in a way that may pass, and the step is tried again."""
    EXPIRED = "expired"
    """Its lease expired without a heartbeat; a result that comes after another claim is dropped."""
    RELEASED = "released"
    """Its worker shut down and gave the step back."""
    BLOCKED = "blocked"
    """Something that it needs is missing, and its question is blocked."""
    UNAVAILABLE = "unavailable"
    """A server that it needs didn't answer, which doesn't count as a failed try."""
    CANCELLED = "cancelled"
    """Its run was cancelled meanwhile."""
    BATCHED = "batched"
    """It made the request that waits for a batch; the execution after the answer takes that."""


class BatchState(StrEnum):
    """The state of a batch."""

    FORMING = "forming"
    """It is recorded, and may have been sent: intent before deed."""
    SENT = "sent"
    """Its provider has it."""
    ENDED = "ended"
    """What became of its lines is recorded."""
    FAILED = "failed"
    """None of its lines was carried out."""


OPEN_BATCHES = (BatchState.FORMING, BatchState.SENT)


class JobState(StrEnum):
    """The state of a job."""

    QUEUED = "queued"
    """It waits for a process to carry it out."""
    RUNNING = "running"
    """A process has claimed it under a lease."""
    FINISHED = "finished"
    """Its result is recorded."""
    FAILED = "failed"
    """Its error is recorded."""
    CANCELLED = "cancelled"
    """Somebody cancelled it before it ended."""


OPEN_JOBS = (JobState.QUEUED, JobState.RUNNING)
