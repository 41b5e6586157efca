"""Registry of the engines' kinds: a line a kind, in addition to the language models."""

from pathlib import Path
from typing import Any

from cotrail.engines.embedding.embedders import EMBEDDERS
from cotrail.engines.engine_catalogue import EngineCatalogue, NamedEngine
from cotrail.engines.entailment.entailers import ENTAILERS
from cotrail.engines.extraction.extractors import EXTRACTORS
from cotrail.engines.rating.raters import RATERS

_CATALOGUES: tuple[EngineCatalogue[Any], ...] = (EMBEDDERS, ENTAILERS, EXTRACTORS, RATERS)

CATALOGUES: dict[str, EngineCatalogue[Any]] = {catalogue.kind: catalogue for catalogue in _CATALOGUES}
"""The engines of every kind that a role takes; `cotrail.engines.language_models` has the language models."""


def find_engine(path: Path, kind: str, name: str | None = None) -> NamedEngine[Any]:
    """The engine of that kind and name, or the kind's default where the name is None; path: `models.toml`.

    Raises UnknownNameError, InputError, and NotInstalledError where it isn't installed.
    """
    return CATALOGUES[kind].find(path, name)
