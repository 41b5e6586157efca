"""Wire protocols: how a provider's API is asked for a text."""

from typing import Any, Protocol

from cotrail.core.ports.language_model import GenerationRequest
from cotrail.engines.language_models.endpoint import Endpoint, Omitted
from cotrail.engines.language_models.served.protocols.delta import AnswerReader
from cotrail.engines.language_models.served.request import Order


class WireProtocol(Protocol):
    """One API of a provider's.

    has_tokenizer: whether servers that speak it may offer their tokenizer along with it.
    never_sent: fields of requests that it doesn't have, see `Omitted`.
    """

    @property
    def has_tokenizer(self) -> bool:
        """See the class."""

    @property
    def never_sent(self) -> frozenset[Omitted]:
        """See the class."""

    def path(self, endpoint: Endpoint, *, streams: bool) -> str:
        """Where a request is sent to, behind the URL of the endpoint."""

    def headers(self, key: str) -> dict[str, str]:
        """The headers of requests, with the key, which is empty where the server needs none."""

    def body(self, order: Order) -> dict[str, Any]:
        """The request. Raises StepError where the server can't do what is asked for."""

    def reader(self) -> AnswerReader:
        """A reader of one answer."""

    def stop_strings(self, endpoint: Endpoint, request: GenerationRequest) -> tuple[str, ...]:
        """The stop strings that the server is given; all others are watched for in the text."""
