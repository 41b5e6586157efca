"""The registries that records from outside of cotrail join, by the types of these records."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from cotrail.core.actions.kind import ActionKind
from cotrail.core.actions.registry import KINDS
from cotrail.core.ports.role import BatchedRole, EngineRole
from cotrail.core.ports.roles import ROLES
from cotrail.data.datasets.registry import DATASETS
from cotrail.data.datasets.spec import DatasetSpec
from cotrail.engines.engine_catalogue import EngineCatalogue
from cotrail.engines.engine_kinds import CATALOGUES
from cotrail.engines.retrieval.engine import FolderEngine, ServerEngine
from cotrail.engines.retrieval.search_engines import ENGINES
from cotrail.errors import InputError
from cotrail.evaluation.experiments.paper import Paper
from cotrail.evaluation.experiments.registry import PAPERS
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.metric import Metric
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


def records_in(module: ModuleType) -> Iterator[Any]:
    """Yield the records at a module's top level, also those in tuples, such as a system's versions; each once."""
    seen: list[int] = []
    for value in vars(module).values():
        for each in value if isinstance(value, tuple) else (value,):
            if type(each) in REGISTRIES and id(each) not in seen:
                seen.append(id(each))
                yield each


def register(record: Any, file: Path) -> None:
    """Add a record of that file to its registry; raises InputError where another one of its type is named so."""
    registry, name = REGISTRIES[type(record)], _name(record)
    records = registry.values() if isinstance(registry, dict) else registry
    if any(record is each for each in records):  # as where a module imports it from another one
        return
    if name in registry if isinstance(registry, dict) else name in map(_name, registry):
        raise InputError(f"the extension {file} names something {_shown(name)}, as another one is named; rename it")
    if isinstance(registry, dict):
        registry[name] = record
    else:
        registry.append(record)


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
