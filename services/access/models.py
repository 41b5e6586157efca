"""The models that the one who asks may use. Others aren't there: errors name neither them nor their tables."""

from typing import Any

from cotrail.configuration.settings import settings
from cotrail.engines.engine_catalogue import NamedEngine
from cotrail.engines.language_models.catalogue import ModelSpec, catalogue, find_model, unknown_model
from cotrail.engines.language_models.providers import provided
from cotrail.engines.registry import CATALOGUES, find_engine
from cotrail.services.access.grants import grants


def find_granted_model(name: str) -> ModelSpec:
    """The language model of that name; raises UnknownNameError where there is none, or it isn't granted."""
    path, models = settings().catalogue_path, grants().models
    if models is None or (name in models and (name in catalogue(path) or provided(name) is not None)):
        return find_model(path, name)
    raise unknown_model(path, name, sorted(models & catalogue(path).keys()))


def find_granted_engine(kind: str, name: str | None) -> NamedEngine[Any]:
    """The engine of that kind and name, or the kind's default; raises UnknownNameError where it isn't granted."""
    path, models = settings().catalogue_path, grants().models
    known = CATALOGUES[kind].all(path)
    if models is None or name is None or (name in models and name in known):
        return find_engine(path, kind, name)
    raise CATALOGUES[kind].unknown(path, name, models & known.keys())
