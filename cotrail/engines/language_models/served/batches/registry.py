"""All batch APIs, by the `batch` of a server's table."""

from collections.abc import Callable, Mapping

from cotrail.core.ports.batches import BatchService
from cotrail.engines.language_models.endpoint import BatchApi, Endpoint
from cotrail.engines.language_models.served.batches.anthropic import AnthropicBatches
from cotrail.engines.language_models.served.batches.openai import MistralBatches, OpenAIBatches
from cotrail.engines.language_models.served.batches.requests import ProviderRequests
from cotrail.engines.language_models.served.client import key_of
from cotrail.engines.language_models.served.protocols.registry import PROTOCOLS

_APIS: Mapping[BatchApi, Callable[[ProviderRequests, str], BatchService]] = {
    "openai": OpenAIBatches,
    "anthropic": AnthropicBatches,
    "mistral": MistralBatches,
}


def open_batches(endpoint: Endpoint, api: BatchApi) -> BatchService:
    """The batch API of that form at an endpoint; raises BlockedError where its key isn't set."""
    protocol = PROTOCOLS[endpoint.api]
    requests = ProviderRequests(endpoint, protocol.headers(key_of(endpoint)))
    return _APIS[api](requests, protocol.path(endpoint, streams=False))
