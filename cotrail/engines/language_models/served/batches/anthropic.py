"""Anthropic's batches: requests in the body, results as lines of a file."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec import Raw, Struct

from cotrail.common.text_files import MIB
from cotrail.core.ports.batches import BatchAnswer, BatchLine, BatchStatus, Going, Unanswered
from cotrail.engines.language_models.served.batches.requests import (
    MOST_PAGES,
    PAGE,
    ProviderId,
    ProviderRequests,
    answered,
    decoded,
)
from cotrail.engines.language_models.served.refusals import reported_in, status_meant
from cotrail.errors import UnavailableError

PATH = "/messages/batches"


class Batch(Struct, frozen=True):
    """A batch, as far as it is read. Of its counts only `processing` moves before its end."""

    id: ProviderId
    created_at: datetime
    processing_status: str = ""
    expires_at: datetime | None = None
    request_counts: dict[str, int] = {}


class Page(Struct, frozen=True):
    """A page of the list of batches."""

    data: tuple[Batch, ...] = ()
    has_more: bool = False
    last_id: ProviderId | None = None


class Outcome(Struct, frozen=True):
    """What became of a line."""

    type: str = ""
    message: Raw = Raw(b"null")
    error: Raw = Raw(b"null")


class ResultLine(Struct, frozen=True):
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
        return self._requests.create(PATH, {"requests": requests})

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
        found = self._requests.get(Batch, f"{PATH}/{batch}")
        counts = found.request_counts
        return BatchStatus(
            state="ended" if found.processing_status == "ended" else "running",
            done=sum(counts.get(name, 0) for name in ("succeeded", "errored")),
            expires_at=found.expires_at,
        )

    def answers(self, batch: str) -> Iterator[BatchAnswer | Unanswered]:
        return map(self._answer, self._requests.lines(f"{PATH}/{batch}/results"))

    def cancel(self, batch: str) -> None:
        self._requests.post(f"{PATH}/{batch}/cancel")

    def _listed(self, since: datetime) -> Iterator[Batch]:
        """The account's batches that were created since then, the latest first."""
        after: dict[str, str] = {}
        for _ in range(MOST_PAGES):
            page = self._requests.get(Page, PATH, limit=PAGE, **after)
            for batch in page.data:
                if batch.created_at < since:
                    return
                yield batch
            if not page.has_more or page.last_id is None:
                return
            after = {"after_id": page.last_id}

    def _answer(self, line: bytes) -> BatchAnswer | Unanswered:
        read = decoded(line, ResultLine, ResultLine())
        endpoint, outcome = self._requests.endpoint, read.result
        match outcome.type:
            case "succeeded":
                return answered(endpoint, read.custom_id, 200, outcome.message)
            case "errored":
                kinds = reported_in(bytes(outcome.error)).kinds
                status = max((status_meant(kind) for kind in kinds), default=500)
                return answered(endpoint, read.custom_id, status, outcome.error)
        return Unanswered(read.custom_id, outcome.type)
