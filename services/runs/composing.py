"""Composition of a run from what its request names: everything that decides its results is pinned."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.configuration.settings import settings
from cotrail.core.binding import MODEL, Binding, with_engines
from cotrail.core.budgets import NO_BUDGETS, Budgets
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.generation import Capability
from cotrail.core.money import Prices
from cotrail.core.ports.embedder import EMBEDDER
from cotrail.core.ports.entailer import ENTAILER
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
    find_model,
    identity,
)
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.prices import price_of
from cotrail.engines.models_file import LANGUAGE_MODEL
from cotrail.engines.registry import find_engine
from cotrail.errors import InputError
from cotrail.models.commands.new_runs import Submission
from cotrail.models.records.runs import BUDGETS, PRICES
from cotrail.services.access.seen import check_models_granted
from cotrail.services.runs.labels import labels_of
from cotrail.services.runs.provenance import STAND_INS, versions
from cotrail.services.runs.requests import RunRequest
from cotrail.services.runs.run_ids import new_id
from cotrail.services.runs.runnable import (
    check_batches,
    check_here,
    check_key,
    check_model,
    check_temperature,
    has_batches,
)
from cotrail.services.runs.system_settings import ConfiguredSystem
from cotrail.systems.spec import Needs


class RunEngine(Struct, frozen=True, kw_only=True):
    """The engine that a run has for a role: its name and identity.

    note: why it stands in for the paper's; empty where it doesn't.
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
    model, profile = _choose_model(system.needs, request)
    batched = request.serving == "batch"
    if batched:
        check_batches(model.name, model.engine)
    engines = _choose_engines(system.needs, request, model, profile)
    names = {role: engine.name for role, engine in engines.items()}
    check_models_granted([model.name, *names.values()])
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
        id=new_id(system.spec.name),
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


def _choose_model(needs: Needs, request: RunRequest) -> tuple[ModelSpec, Profile]:
    """The model that the request names, or the default one, and its profile; raises InputError, UnknownNameError."""
    model = find_model(settings().catalogue_path, request.model or settings().model)
    samples = needs.samples and not _asks_server(needs, request)
    profile = request.profile or default_profile(model, samples=samples)
    _check_language_model(model, profile, needs.capabilities)
    check_temperature(model.name, model.engine, request.temperature)
    return model, profile


def _asks_server(needs: Needs, request: RunRequest) -> bool:
    """Whether a named engine other than a language model is behind a server, which isn't deterministic."""
    named = [(role.kind, request.engines[role.name]) for role in needs.engines if role.name in request.engines]
    found = (find_engine(settings().catalogue_path, *each) for each in named if each[0] != LANGUAGE_MODEL)
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
        chosen = model if name is None else find_model(settings().catalogue_path, name)
        _check_language_model(chosen, profile, role.capabilities)
        return RunEngine(name=chosen.name, identity=identity(chosen), served=chosen.engine.served, model=chosen)
    found = find_engine(settings().catalogue_path, role.kind, name)
    found.check_profile(profile)
    check_here(f"the {role.name} {found.name}", found.engine)
    check_key(found.name, found.engine)
    return RunEngine(name=found.name, identity=found.identity(identity(model)), note=found.instead)
