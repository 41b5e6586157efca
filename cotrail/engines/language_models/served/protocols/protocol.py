"""Wire protocols: how a provider's API is asked for a text."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from cotrail.core.ports.language_model import GenerationRequest
from cotrail.engines.language_models.endpoint import Endpoint, Omitted
from cotrail.engines.language_models.served.protocols.delta import AnswerReader, bearer
from cotrail.engines.language_models.served.request import Order, told_stops


class WireProtocol(ABC):
    """One API of a provider's.

    has_tokenizer: whether servers that speak it may offer their tokenizer along with it.
    never_sent: fields of requests that it doesn't have, see `Omitted`.
    address: where requests are sent to, behind the URL of the endpoint.
    """

    has_tokenizer: ClassVar[bool] = False
    never_sent: ClassVar[frozenset[Omitted]] = frozenset()
    address: ClassVar[str]

    def path(self, endpoint: Endpoint, *, streams: bool) -> str:  # noqa: ARG002 - alike for all in most APIs
        """Where a request is sent to, behind the URL of the endpoint."""
        return self.address

    def headers(self, key: str) -> dict[str, str]:
        """The headers of requests, with the key, which is empty where the server needs none."""
        return bearer(key)

    def stop_strings(self, endpoint: Endpoint, request: GenerationRequest) -> tuple[str, ...]:
        """The stop strings that the server is given; all others are watched for in the text."""
        return told_stops(endpoint, request)

    @abstractmethod
    def body(self, order: Order) -> dict[str, Any]:
        """The request. Raises StepError where the server can't do what is asked for."""

    @abstractmethod
    def reader(self) -> AnswerReader:
        """A reader of one answer."""
