"""The registries that records from outside of cotrail join, by the types of these records."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec.structs import force_setattr

from cotrail.core.actions.kind import ActionKind
from cotrail.core.actions.registry import KINDS
from cotrail.core.ports.role import BatchedRole, EngineRole
from cotrail.core.ports.roles import ROLES
from cotrail.data.datasets.registry import DATASETS
from cotrail.data.datasets.spec import DatasetSpec
from cotrail.engines.engine_catalogue import EngineCatalogue
from cotrail.engines.engine_kinds import CATALOGUES
from cotrail.engines.retrieval.engine import ENGINES, FolderEngine, ServerEngine
from cotrail.errors import InputError
from cotrail.evaluation.experiments.paper import Paper
from cotrail.evaluation.experiments.registry import PAPERS
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.metric import Metric
from cotrail.systems.own import Source, read_source
from cotrail.systems.registry import SYSTEMS
from cotrail.systems.spec import SystemSpec

REGISTRIES: dict[type, Any] = {
    ActionKind: KINDS,
    BatchedRole: ROLES,
    DatasetSpec: DATASETS,
    EngineCatalogue: CATALOGUES,
    EngineRole: ROLES,
    FolderEngine: ENGINES,
    Metric: METRICS,
    Paper: PAPERS,
    ServerEngine: ENGINES,
    SystemSpec: SYSTEMS,
}


def records_in(named: ModuleType | Mapping[str, Any]) -> Iterator[Any]:
    """Yield the records at a module's top level, also those in tuples, such as a system's versions; each once."""
    seen: list[int] = []
    for value in (vars(named) if isinstance(named, ModuleType) else named).values():
        for each in value if isinstance(value, tuple) else (value,):
            if type(each) in REGISTRIES and id(each) not in seen:
                seen.append(id(each))
                yield each


def register(record: Any, place: Path) -> None:
    """Add a record of that module or package to its registry, a system with the digest of its text.

    Raises InputError where another one of its type is named so.
    """
    registry, name = REGISTRIES[type(record)], _name(record)
    records = registry.values() if isinstance(registry, dict) else registry
    if any(record is each for each in records):  # as where a module imports it from another one
        return
    if name in registry if isinstance(registry, dict) else name in map(_name, registry):
        raise InputError(f"the extension {place} names something {_shown(name)}, as another one is named; rename it")
    if isinstance(record, SystemSpec):
        force_setattr(record, "source", source_of(place))
    if isinstance(registry, dict):
        registry[name] = record
    else:
        registry.append(record)


def source_of(place: Path) -> str:
    """The digest of the text of a module, with the modules next to it that it imports, or of a whole package."""
    if not place.is_dir():
        return read_source(place).digest
    texts = {str(each.relative_to(place)): each.read_text("utf-8") for each in sorted(place.rglob("*.py"))}
    return Source(main=place.name, files=texts).digest


def _shown(name: Any) -> str:
    return f"{name[0]} (version {name[1]})" if isinstance(name, tuple) else str(name)


def _name(record: Any) -> Any:
    """What tells a record from others of its type: a system has versions, and a paper goes by its files' protocol."""
    match record:
        case SystemSpec():
            return record.name, record.version
        case EngineCatalogue():
            return record.kind
        case Paper():
            return record.file.__struct_config__.tag
    return record.name
