"""A job as people and programs see it."""

from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from cotrail import errors
from cotrail.errors import ConflictError, CotrailError
from cotrail.models.records.jobs import JobRecord
from cotrail.models.schema.states import OPEN_JOBS as OPEN_JOBS
from cotrail.models.schema.states import JobState

R = TypeVar("R")


class JobError(Struct, frozen=True, kw_only=True):
    """Why a job failed; type: the name of the kind of error."""

    type: str
    message: str


class Job(Struct, frozen=True, kw_only=True):
    """Queued work that isn't a run's.

    kind: `index` or `experiment`; name: of what it makes; progress: how many paragraphs, or questions, are done.
    result: what it came to; of an experiment that is under way, how far it is.
    """

    job: str
    kind: str
    name: str
    state: JobState
    progress: int
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    result: dict[str, Any] | None = None
    error: JobError | None = None

    @property
    def open(self) -> bool:
        """Return whether it hasn't ended."""
        return self.state in OPEN_JOBS

    def outcome(self, of: type[R]) -> R:
        """The result of a job that has ended; raises the error that it failed with, ConflictError if cancelled."""
        if self.error is not None:
            kind = getattr(errors, self.error.type, CotrailError)
            raise (kind if issubclass(kind, CotrailError) else CotrailError)(self.error.message)
        if self.state is not JobState.FINISHED:
            raise ConflictError(f"the job {self.job} is {self.state}")
        return msgspec.convert(self.result, of)


class JobPage(Struct, frozen=True, kw_only=True):
    """Some jobs, the newest first; next: the job behind which the next page begins, if there is one."""

    jobs: tuple[Job, ...]
    next: str | None


def job_of(record: JobRecord) -> Job:
    """A row as people see it: what it was asked for names files of the service, and isn't shown."""
    return Job(
        job=record.id,
        kind=record.kind,
        name=record.request["name"],
        state=record.state,
        progress=record.progress,
        created_at=record.created_at,
        started_at=record.started_at,
        finished_at=record.finished_at,
        result=record.result,
        error=None if record.error is None else msgspec.convert(record.error, JobError),
    )
