"""The registries that records from outside of cotrail join, by the types of these records."""

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec.structs import force_setattr

from cotrail.configuration.extensions import COMMANDS, VIEWS, Command, RunView
from cotrail.core.actions.kind import ActionKind
from cotrail.core.actions.registry import KINDS
from cotrail.core.ports.encoders import ROLES
from cotrail.core.ports.role import BatchedRole, EngineRole
from cotrail.data.datasets.registry import DATASETS
from cotrail.data.datasets.spec import DatasetSpec
from cotrail.engines.engine_catalogue import EngineCatalogue
from cotrail.engines.engine_kinds import CATALOGUES
from cotrail.engines.models_file import MODEL_TABLES, ModelTable
from cotrail.engines.retrieval.engine import ENGINES, FolderEngine, ServerEngine
from cotrail.errors import InputError
from cotrail.evaluation.experiments.paper import Paper
from cotrail.evaluation.experiments.registry import PAPERS
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.metric import Metric, ScoredQuestion
from cotrail.systems.judge.rubric import RUBRICS, Rubric
from cotrail.systems.own import Source, read_source
from cotrail.systems.registry import SYSTEMS
from cotrail.systems.spec import SystemSpec

logger = logging.getLogger(__name__)

REGISTRIES: dict[type, Any] = {
    ActionKind: KINDS,
    BatchedRole: ROLES,
    Command: COMMANDS,
    DatasetSpec: DATASETS,
    EngineCatalogue: CATALOGUES,
    EngineRole: ROLES,
    FolderEngine: ENGINES,
    Metric: METRICS,
    ModelTable: MODEL_TABLES,
    Paper: PAPERS,
    Rubric: RUBRICS,
    RunView: VIEWS,
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


def register_named(named: Any, place: Path) -> None:
    """Add what an entry point of a package names: a record, or a module's; raises InputError where there is none."""
    records = tuple(records_in(named if isinstance(named, ModuleType) else {"": named}))
    if not records:
        raise InputError("what it names is neither a record of cotrail's nor a module with some")
    for record in records:
        register(record, place)


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
    if isinstance(record, Metric):
        force_setattr(record, "score", partial(_score, record.name, place, record.score))
    if isinstance(registry, dict):
        registry[name] = record
    else:
        registry.append(record)


def _score(metric: str, place: Path, score: Callable[[ScoredQuestion], Any], question: ScoredQuestion) -> float | None:
    """The value of a metric; None, and said once, where its code raises an error or gives what isn't a number."""
    try:
        value = score(question)
        if value is None or isfinite(value):
            return None if value is None else float(value)
        _warn(metric, place, f"it gives {value!r}, and not a number")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever its code raises
        _warn(metric, place, f"{type(error).__name__}: {error}")
    return None


@lru_cache(maxsize=100)
def _warn(metric: str, place: Path, problem: str) -> None:
    logger.warning("the metric %s of the extension %s leaves questions out (%s); correct it", metric, place, problem)


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
