"""Mistral's batches: as OpenAI's, with jobs of other fields."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.input_limits import MIB
from cotrail.core.ports.batches import BatchAnswer, BatchLine, BatchState, BatchStatus, Going, Unanswered
from cotrail.engines.language_models.endpoint import VERSION
from cotrail.engines.language_models.served.batches.answers import LineFailure
from cotrail.engines.language_models.served.batches.files import read_files
from cotrail.engines.language_models.served.batches.requests import KEY, MOST_PAGES, PAGE, ProviderId, ProviderRequests

HOURS = 24
"""How long a job may take."""

_STATES: Mapping[str, BatchState] = {
    "FAILED": "failed",
    "SUCCESS": "ended",
    "TIMEOUT_EXCEEDED": "ended",
    "CANCELLED": "ended",
}


class Job(Struct, frozen=True):
    """A job, as far as it is read."""

    id: ProviderId
    status: str = ""
    created_at: int = 0
    metadata: dict[str, Any] | None = None
    completed_requests: int = 0
    errors: tuple[LineFailure, ...] = ()
    output_file: ProviderId | None = None
    error_file: ProviderId | None = None


class Jobs(Struct, frozen=True):
    """A page of the list of jobs."""

    data: tuple[Job, ...] | None = None


class MistralBatches:
    """See `BatchService`; path: as `OpenAIBatches` has it."""

    most_lines = 100_000
    most_bytes = 64 * MIB

    def __init__(self, requests: ProviderRequests, path: str) -> None:
        self._requests = requests
        self._url = VERSION + path

    def send(self, key: str, lines: Sequence[BatchLine], going: Going) -> str:
        """See `BatchService`."""
        content = b"".join(map(_line, lines))
        body = {
            "input_files": [self._requests.upload("/files", content, f"{key}.jsonl", purpose="batch")],
            "endpoint": self._url,
            "model": self._requests.endpoint.model,
            "metadata": {KEY: key},
            "timeout_hours": HOURS,
        }
        going()
        return self._requests.create("/batch/jobs", body)

    def find(self, key: str, size: int, since: datetime, known: Collection[str]) -> str | None:  # noqa: ARG002
        """See `BatchService`."""
        created_after = since.isoformat()
        for page in range(MOST_PAGES):
            found = self._requests.get(Jobs, "/batch/jobs", page=page, page_size=PAGE, created_after=created_after)
            jobs = found.data or ()
            named = next((job.id for job in jobs if (job.metadata or {}).get(KEY) == key), None)
            if named is not None or len(jobs) < PAGE:
                return named
        return None

    def status(self, batch: str) -> BatchStatus:
        """See `BatchService`."""
        job = self._job(batch)
        return BatchStatus(
            state=_STATES.get(job.status, "running"),
            done=job.completed_requests,
            expires_at=datetime.fromtimestamp(job.created_at, UTC) + timedelta(hours=HOURS),
            message="; ".join(str(error.message or error.code) for error in job.errors),
        )

    def answers(self, batch: str) -> Iterator[BatchAnswer | Unanswered]:
        """See `BatchService`."""
        job = self._job(batch)
        return read_files(self._requests, (job.output_file, job.error_file))

    def cancel(self, batch: str) -> None:
        """See `BatchService`."""
        self._requests.post(f"/batch/jobs/{batch}/cancel")

    def _job(self, batch: str) -> Job:
        return self._requests.get(Job, f"/batch/jobs/{batch}")


def _line(line: BatchLine) -> bytes:
    return msgspec.json.encode({"custom_id": line.id, "body": msgspec.Raw(line.body.encode())}) + b"\n"
