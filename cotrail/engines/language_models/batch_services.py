"""Batch APIs of the models that there are."""

from cotrail.core.ports.batches import BatchService
from cotrail.engines.language_models.catalogue import ModelSpec, Server
from cotrail.engines.optional_packages import installed_with
from cotrail.errors import BlockedError, InputError


def has_batches(spec: ModelSpec) -> bool:
    """Return whether a model can be asked in batches."""
    return isinstance(spec.engine, Server) and spec.engine.batch is not None


def check_batches(spec: ModelSpec) -> None:
    """Raises InputError where a model can't be asked in batches."""
    if not has_batches(spec):
        raise InputError(
            f"the model {spec.name} can't be asked in batches: that needs a provider which offers them, and `batch` in "
            'its table of models.toml ("openai", "anthropic" or "mistral"); or submit the run without --serving batch'
        )


def open_batch_service(spec: ModelSpec) -> BatchService:
    """The batch API of a model's provider; raises BlockedError where it has none any more, or its key isn't set."""
    engine = spec.engine
    if not isinstance(engine, Server) or engine.batch is None:
        raise BlockedError(f"the table of the model {spec.name} has no `batch` any more, which batches under way need")
    with installed_with("openai"):
        from cotrail.engines.language_models.served.batches.registry import open_batches

    return open_batches(engine, engine.batch)
