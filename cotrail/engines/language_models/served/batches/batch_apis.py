"""All batch APIs, by the `batch` of a server's table."""

from collections.abc import Callable, Mapping

from cotrail.core.ports.batches import BatchService
from cotrail.engines.language_models.catalogue import ModelSpec, Server
from cotrail.engines.language_models.endpoint import BatchApi, Endpoint
from cotrail.engines.language_models.served.batches.anthropic import AnthropicBatches
from cotrail.engines.language_models.served.batches.openai import MistralBatches, OpenAIBatches
from cotrail.engines.language_models.served.batches.requests import ProviderRequests
from cotrail.engines.language_models.served.client import key_of
from cotrail.engines.language_models.served.protocols.wire_protocols import PROTOCOLS
from cotrail.errors import BlockedError

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


# Batch APIs of the models that there are.


def open_batch_service(spec: ModelSpec) -> BatchService:
    """The batch API of a model's provider; raises BlockedError where it has none any more, or its key isn't set."""
    engine = spec.engine
    if not isinstance(engine, Server) or engine.batch is None:
        raise BlockedError(f"the table of the model {spec.name} has no `batch` any more, which batches under way need")
    return open_batches(engine, engine.batch)
