"""Port of batch APIs: a provider answers many requests within a day, for less money.

Port of language models that may be asked in batches.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct

from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.results import Generated
from cotrail.errors import CotrailError


class BatchLine(Struct, frozen=True):
    """A request of a batch; id: the step's own within the batch; body: as JSON, as the provider would be sent it."""

    id: str
    body: str


class BatchAnswer(Struct, frozen=True):
    """What a provider says of a line; body: as JSON, of the answer, or of the error where the status is one."""

    id: str
    status: int
    body: str


class Unanswered(Struct, frozen=True):
    """A line that the provider took no answer's money for and may be sent again: it expired, or the server was busy."""

    id: str
    reason: str


BatchState = Literal["running", "ended", "failed"]
"""`failed`: none of its lines was carried out."""


class BatchStatus(Struct, frozen=True, kw_only=True):
    """How far a batch is.

    done: how many lines have ended, as far as the provider tells. too_large: whether it failed since it, or what is
    waiting together with it, is more than the account may have waiting. message: why it failed.
    """

    state: BatchState
    done: int = 0
    expires_at: datetime | None = None
    too_large: bool = False
    message: str = ""


class Going(Protocol):
    """Raises where its caller is no longer the one to go on."""

    def __call__(self) -> None:
        """See the class."""


class BatchService(Protocol):
    """The batch API of one model's provider.

    All methods raise BlockedError where a person has to act, StepError where the provider refuses for good, and
    UnavailableError or TransientStepError where it may be asked again.
    """

    @property
    def most_lines(self) -> int:
        """How many lines a batch may have."""

    @property
    def most_bytes(self) -> int:
        """How large their bodies may be together."""

    def send(self, key: str, lines: Sequence[BatchLine], going: Going) -> str:
        """Creates a batch; returns the provider's id of it.

        key: names the batch among the account's. going: called right before the request that creates it, and raises
        where that must not be sent any more.
        """

    def find(self, key: str, size: int, since: datetime, known: Collection[str]) -> str | None:
        """The provider's id of the batch that was created under a key, None where none was.

        size: how many lines it would have; since: when it was created at the earliest; known: ids of other batches.
        Raises UnavailableError where that can't be known yet.
        """

    def status(self, batch: str) -> BatchStatus:
        """How far a batch is; batch: the provider's id. Raises BatchLostError where there is no such batch."""

    def answers(self, batch: str) -> Iterator[BatchAnswer | Unanswered]:
        """What became of the lines of a batch that has ended, in any order; lines may be missing."""

    def cancel(self, batch: str) -> None:
        """Has a batch ended early: lines that are done keep their answers."""


class UnusableAnswer(Exception):  # noqa: N818 - the error itself is what counts
    """There is no result in an answer, whatever is done with it: it has to be asked for again, if at all.

    error: the step's.
    """

    def __init__(self, error: CotrailError) -> None:
        super().__init__(str(error))
        self.error = error


@runtime_checkable
class TakesBatches(Protocol):
    """A language model that may be asked in batches."""

    @property
    def has_batches(self) -> bool:
        """Whether its provider offers them."""

    def batch_body(self, request: GenerationRequest) -> str:
        """The body of a line, as JSON; raises as `LanguageModel.generate` does before it has sent anything."""

    def batch_result(self, request: GenerationRequest, answer: BatchAnswer) -> Generated:
        """The result of a request by the answer to its line; raises UnusableAnswer, and as `generate` does."""
