"""Batches of providers: OpenAI's and Mistral's are files that are uploaded; Anthropic's are requests in the body."""

from abc import ABC
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import msgspec
from msgspec import Raw, Struct

from cotrail.common.text_files import MIB
from cotrail.core.ports.batches import BatchAnswer, BatchLine, BatchState, BatchStatus, Going, Unanswered
from cotrail.engines.language_models.endpoint import VERSION
from cotrail.engines.language_models.served.batches.requests import (
    KEY,
    MOST_PAGES,
    PAGE,
    LineFailure,
    ProviderId,
    ProviderRequests,
    answered,
    decoded,
    read_files,
)
from cotrail.engines.language_models.served.refusals import reported_in, status_meant
from cotrail.errors import UnavailableError

TOO_LARGE = ("token_limit_exceeded", "batch_size_limit_exceeded")
"""Codes of batches that failed since the account may have no more waiting."""

_STATES: Mapping[str, BatchState] = {"failed": "failed", "completed": "ended", "expired": "ended", "cancelled": "ended"}


class Counts(Struct, frozen=True):
    """How many lines have ended."""

    completed: int = 0
    failed: int = 0


class Errors(Struct, frozen=True):
    """Why a batch failed."""

    data: tuple[LineFailure, ...] | None = None


class Batch(Struct, frozen=True):
    """A batch, as far as it is read."""

    id: ProviderId
    status: str = ""
    created_at: int = 0
    expires_at: int | None = None
    metadata: dict[str, Any] | None = None
    request_counts: Counts | None = None
    errors: Errors | None = None
    output_file_id: ProviderId | None = None
    error_file_id: ProviderId | None = None


class Page(Struct, frozen=True):
    """A page of the list of batches."""

    data: tuple[Batch, ...] = ()
    has_more: bool = False


class FileBatches(ABC):
    """Batches whose requests are a file that is uploaded; see `BatchService`.

    path: where each request would be sent to, behind the endpoint's URL. address: where batches are made.
    """

    most_bytes = 64 * MIB
    """A third of what OpenAI takes at most, so that an upload doesn't take long."""
    address: ClassVar[str]

    def __init__(self, requests: ProviderRequests, path: str) -> None:
        self._requests = requests
        self._url = VERSION + path

    def cancel(self, batch: str) -> None:
        self._requests.post(f"{self.address}/{batch}/cancel")

    def _uploaded(self, key: str, lines: Sequence[BatchLine]) -> ProviderId:
        content = b"".join(msgspec.json.encode(self._line(line)) + b"\n" for line in lines)
        return self._requests.upload("/files", content, f"{key}.jsonl", purpose="batch")

    def _line(self, line: BatchLine) -> dict[str, Any]:
        return {"custom_id": line.id, "body": msgspec.Raw(line.body.encode())}


class OpenAIBatches(FileBatches):
    """See `BatchService`."""

    most_lines = 50_000
    address = "/batches"

    def send(self, key: str, lines: Sequence[BatchLine], going: Going) -> str:
        body = {
            "input_file_id": self._uploaded(key, lines),
            "endpoint": self._url,
            "completion_window": "24h",
            "metadata": {KEY: key},
        }
        going()
        return self._requests.create(self.address, body)

    def find(self, key: str, size: int, since: datetime, known: Collection[str]) -> str | None:  # noqa: ARG002
        # By the key in its metadata, so that neither size nor time can take another batch for this one.
        named = (batch.id for batch in self._listed(since) if (batch.metadata or {}).get(KEY) == key)
        return next(named, None)

    def status(self, batch: str) -> BatchStatus:
        found = self._batch(batch)
        counts, errors = found.request_counts or Counts(), (found.errors or Errors()).data or ()
        return BatchStatus(
            state=_STATES.get(found.status, "running"),
            done=counts.completed + counts.failed,
            expires_at=datetime.fromtimestamp(found.expires_at, UTC) if found.expires_at else None,
            too_large=any(error.code in TOO_LARGE for error in errors),
            message="; ".join(str(error.message or error.code) for error in errors),
        )

    def answers(self, batch: str) -> Iterator[BatchAnswer | Unanswered]:
        found = self._batch(batch)
        return read_files(self._requests, (found.output_file_id, found.error_file_id))

    def _batch(self, batch: str) -> Batch:
        return self._requests.get(Batch, f"{self.address}/{batch}")

    def _line(self, line: BatchLine) -> dict[str, Any]:
        body = msgspec.Raw(line.body.encode())
        return {"custom_id": line.id, "method": "POST", "url": self._url, "body": body}

    def _listed(self, since: datetime) -> Iterator[Batch]:
        """The account's batches that were created since then, the latest first."""
        after: dict[str, str] = {}
        for _ in range(MOST_PAGES):
            page = self._requests.get(Page, self.address, limit=PAGE, **after)
            for batch in page.data:
                if batch.created_at < since.timestamp():
                    return
                yield batch
            if not page.data or not page.has_more:
                return
            after = {"after": page.data[-1].id}


HOURS = 24
"""How long a job may take."""

_MISTRAL_STATES: Mapping[str, BatchState] = {
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


class MistralBatches(FileBatches):
    """See `BatchService`."""

    most_lines = 100_000
    address = "/batch/jobs"

    def send(self, key: str, lines: Sequence[BatchLine], going: Going) -> str:
        body = {
            "input_files": [self._uploaded(key, lines)],
            "endpoint": self._url,
            "model": self._requests.endpoint.model,
            "metadata": {KEY: key},
            "timeout_hours": HOURS,
        }
        going()
        return self._requests.create(self.address, body)

    def find(self, key: str, size: int, since: datetime, known: Collection[str]) -> str | None:  # noqa: ARG002
        created_after = since.isoformat()
        for page in range(MOST_PAGES):
            found = self._requests.get(Jobs, self.address, page=page, page_size=PAGE, created_after=created_after)
            jobs = found.data or ()
            named = next((job.id for job in jobs if (job.metadata or {}).get(KEY) == key), None)
            if named is not None or len(jobs) < PAGE:
                return named
        return None

    def status(self, batch: str) -> BatchStatus:
        job = self._job(batch)
        return BatchStatus(
            state=_MISTRAL_STATES.get(job.status, "running"),
            done=job.completed_requests,
            expires_at=datetime.fromtimestamp(job.created_at, UTC) + timedelta(hours=HOURS),
            message="; ".join(str(error.message or error.code) for error in job.errors),
        )

    def answers(self, batch: str) -> Iterator[BatchAnswer | Unanswered]:
        job = self._job(batch)
        return read_files(self._requests, (job.output_file, job.error_file))

    def _job(self, batch: str) -> Job:
        return self._requests.get(Job, f"{self.address}/{batch}")


# Anthropic's batches: requests in the body, results as lines of a file.

MESSAGES = "/messages/batches"


class MessageBatch(Struct, frozen=True):
    """A batch, as far as it is read. Of its counts only `processing` moves before its end."""

    id: ProviderId
    created_at: datetime
    processing_status: str = ""
    expires_at: datetime | None = None
    request_counts: dict[str, int] = {}


class MessagePage(Struct, frozen=True):
    """A page of the list of batches."""

    data: tuple[MessageBatch, ...] = ()
    has_more: bool = False
    last_id: ProviderId | None = None


class Outcome(Struct, frozen=True):
    """What became of a line."""

    type: str = ""
    message: Raw = Raw(b"null")
    error: Raw = Raw(b"null")


class MessageResult(Struct, frozen=True):
    """A line of results."""

    custom_id: str = ""
    result: Outcome = Outcome()


class AnthropicBatches:
    """See `BatchService`."""

    most_lines = 100_000
    most_bytes = 64 * MIB
    """A quarter of what Anthropic takes at most, so that sending it doesn't take long."""

    def __init__(self, requests: ProviderRequests, path: str) -> None:  # noqa: ARG002 - it has a path of its own
        self._requests = requests

    def send(self, key: str, lines: Sequence[BatchLine], going: Going) -> str:  # noqa: ARG002 - its lines have the key
        requests = [{"custom_id": line.id, "params": msgspec.Raw(line.body.encode())} for line in lines]
        going()
        return self._requests.create(MESSAGES, {"requests": requests})

    def find(self, key: str, size: int, since: datetime, known: Collection[str]) -> str | None:
        """See `BatchService`: nothing names a batch but the ids in its results, and these come at its end."""
        for batch in self._listed(since):
            # Batches have no metadata here: size and time narrow it down, and only the ids of its lines prove it.
            if batch.id in known or sum(batch.request_counts.values()) != size:
                continue
            if batch.processing_status != "ended":
                raise UnavailableError(
                    f"a batch was being sent as its process ended, and {batch.id} may be it: its end tells"
                )
            first = next(self.answers(batch.id), None)
            if first is not None and first.id.startswith(f"{key}-"):
                return batch.id
        return None

    def status(self, batch: str) -> BatchStatus:
        found = self._requests.get(MessageBatch, f"{MESSAGES}/{batch}")
        counts = found.request_counts
        return BatchStatus(
            state="ended" if found.processing_status == "ended" else "running",
            done=sum(counts.get(name, 0) for name in ("succeeded", "errored")),
            expires_at=found.expires_at,
        )

    def answers(self, batch: str) -> Iterator[BatchAnswer | Unanswered]:
        return map(self._answer, self._requests.lines(f"{MESSAGES}/{batch}/results"))

    def cancel(self, batch: str) -> None:
        self._requests.post(f"{MESSAGES}/{batch}/cancel")

    def _listed(self, since: datetime) -> Iterator[MessageBatch]:
        after: dict[str, str] = {}
        for _ in range(MOST_PAGES):
            page = self._requests.get(MessagePage, MESSAGES, limit=PAGE, **after)
            for batch in page.data:
                if batch.created_at < since:
                    return
                yield batch
            if not page.has_more or page.last_id is None:
                return
            after = {"after_id": page.last_id}

    def _answer(self, line: bytes) -> BatchAnswer | Unanswered:
        read = decoded(line, MessageResult, MessageResult())
        endpoint, outcome = self._requests.endpoint, read.result
        match outcome.type:
            case "succeeded":
                return answered(endpoint, read.custom_id, 200, outcome.message)
            case "errored":
                kinds = reported_in(bytes(outcome.error)).kinds
                status = max((status_meant(kind) for kind in kinds), default=500)
                return answered(endpoint, read.custom_id, status, outcome.error)
        return Unanswered(read.custom_id, outcome.type)
