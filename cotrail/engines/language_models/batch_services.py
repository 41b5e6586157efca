"""Batch APIs of the models that there are."""

from cotrail.core.ports.batches import BatchService
from cotrail.engines.language_models.catalogue import ModelSpec, Server
from cotrail.engines.optional_packages import installed_with
from cotrail.errors import BlockedError


def open_batch_service(spec: ModelSpec) -> BatchService:
    """The batch API of a model's provider; raises BlockedError where it has none any more, or its key isn't set."""
    engine = spec.engine
    if not isinstance(engine, Server) or engine.batch is None:
        raise BlockedError(f"the table of the model {spec.name} has no `batch` any more, which batches under way need")
    with installed_with("openai"):
        from cotrail.engines.language_models.served.batches.registry import open_batches

    return open_batches(engine, engine.batch)
