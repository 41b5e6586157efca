"""OpenAI's chat completions, which most servers and providers speak."""

from typing import Any

from cotrail.core.ports.language_model import GenerationRequest
from cotrail.engines.language_models.endpoint import Endpoint, Omitted
from cotrail.engines.language_models.served.prompt_fields import chat_fields
from cotrail.engines.language_models.served.protocols.bearer import bearer
from cotrail.engines.language_models.served.protocols.chunks import ChunkReader
from cotrail.engines.language_models.served.request import Order, generation_fields, told_stops
from cotrail.engines.language_models.served.scores import scores_request
from cotrail.engines.language_models.served.structure import structure_fields


class Chat:
    """See `WireProtocol`."""

    has_tokenizer = True
    never_sent: frozenset[Omitted] = frozenset()

    def path(self, endpoint: Endpoint, *, streams: bool) -> str:  # noqa: ARG002 - always the same
        """See `WireProtocol`."""
        return "/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        """See `WireProtocol`."""
        return bearer(key)

    def stop_strings(self, endpoint: Endpoint, request: GenerationRequest) -> tuple[str, ...]:
        """See `WireProtocol`."""
        # A chat message may open with line breaks, which are layout and don't end the line.
        return () if request.until == "line" else told_stops(endpoint, request)

    def body(self, order: Order) -> dict[str, Any]:
        """See `WireProtocol`."""
        request = order.request
        return {
            **chat_fields(order.prompt, order.endpoint.continues),
            **generation_fields(order, self.stop_strings(order.endpoint, request)),
            **(scores_request("chat") if request.scored else {}),
            **structure_fields(order.dialect, request),
        }

    def reader(self) -> ChunkReader:
        """See `WireProtocol`."""
        return ChunkReader()
