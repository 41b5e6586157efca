"""Registry of the engines' roles: a line a role."""

from cotrail.core.ports.encoders import DUPLICATE_RATER, EMBEDDER, ENTAILER, EXTRACTOR, RELEVANCE_RATER
from cotrail.core.ports.language_model import INFERRER
from cotrail.core.ports.role import EngineRole

_RECORDS: tuple[EngineRole, ...] = (EMBEDDER, ENTAILER, EXTRACTOR, DUPLICATE_RATER, RELEVANCE_RATER, INFERRER)

ROLES: dict[str, EngineRole] = {role.name: role for role in _RECORDS}
"""Every role by its name, under which run files and options name its engine, next to the run's language model."""
