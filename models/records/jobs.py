"""Rows of jobs, as records."""

from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import RowMapping

from cotrail.models.schema.service_tables import jobs
from cotrail.models.schema.states import JobState


class JobRecord(Struct, frozen=True, kw_only=True):
    """A job; see `cotrail.models.schema.service_tables.Job`."""

    id: str
    project: str
    kind: str
    request: dict[str, Any]
    state: JobState
    progress: int
    failures: int
    result: dict[str, Any] | None
    error: dict[str, Any] | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    epoch: int
    worker: str | None


COLUMNS = tuple(jobs.c[name] for name in JobRecord.__struct_fields__)


def job_record(row: RowMapping) -> JobRecord:
    """A row of `COLUMNS` as a record."""
    return JobRecord(**{**row, "state": JobState(row["state"])})
