"""Composition of a run from what its request names: everything that decides its results is pinned."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from msgspec import Struct

from cotrail.configuration.settings import settings
from cotrail.core.binding import Binding
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.ports.language_model import Profile
from cotrail.core.questions import GoldParagraph, Question
from cotrail.engines.embedding.catalogue import find_embedder
from cotrail.engines.entailment.catalogue import find_entailer
from cotrail.engines.knowledge.store import KnowledgeStore
from cotrail.engines.language_models.catalogue import (
    ModelSpec,
    check_capabilities,
    check_profile,
    default_profile,
    find_model,
    identity,
)
from cotrail.errors import InputError
from cotrail.models.commands.new_runs import Submission
from cotrail.services.labels import labels_of
from cotrail.services.named_engines import pin_named
from cotrail.services.provenance import INSTEAD, versions
from cotrail.services.requests import RunRequest
from cotrail.services.runnable import check_here, check_model
from cotrail.services.system_settings import ConfiguredSystem
from cotrail.systems.spec import Needs


class EvidenceEngines(Struct, frozen=True, kw_only=True):
    """Names and identities of the models that compare sentences; each knowledge source's revision.

    notes: where a model stands in for the paper's, and why.
    """

    embedder_name: str = ""
    embedder: str = ""
    entailer_name: str = ""
    entailer: str = ""
    knowledge: dict[str, str] = {}
    notes: tuple[str, ...] = ()


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
    model_identity = identity(model)
    engines = _choose_evidence_engines(system.needs, request, model_identity)
    instead = {INSTEAD: engines.notes} if engines.notes else {}
    return Submission(
        id=_new_id(system.spec.name),
        system=system.spec.name,
        system_version=system.spec.version,
        settings=system.settings,
        dataset=request.dataset,
        # The default model is named in the record too, since the settings may name another one later.
        model_name=model.name,
        embedder_name=engines.embedder_name,
        entailer_name=engines.entailer_name,
        binding=Binding(
            model=model_identity,
            profile=profile,
            temperature=request.temperature,
            seed=request.seed,
            corpora=dict(corpora) if system.needs.corpus else {},
            embedder=engines.embedder,
            entailer=engines.entailer,
            pins=engines.knowledge | pin_named(system.needs, request, settings().catalogue_path),
        ),
        shots=shots,
        provenance={**versions(), **provenance, **instead},
        priority=request.priority,
        served=model.engine.served,
        labels=labels_of(request.name, request.tags),
    )


def check_evidence(questions: Sequence[Question], path: Path) -> None:
    """Raises InputError where no question has the paragraphs that its dataset names as evidence."""
    if not any(isinstance(each, GoldParagraph) for question in questions for each in question.evidence):
        raise InputError(
            f'{path}: knowledge = ["evidence"] looks at the paragraphs that the dataset names as evidence, and the '
            "corpus has none of them: search StrategyQA's own (`cotrail index strategyqa_train_paragraphs.json --name "
            'evidence`), or set evidence = "pages" to search the pages of those titles'
        )


def _new_id(system: str) -> str:
    # Three random bytes tell the runs of one day apart; the primary key refuses the rare collision.
    return f"{system}-{date.today():%Y%m%d}-{secrets.token_hex(3)}"


def _choose_model(needs: Needs, request: RunRequest) -> tuple[ModelSpec, Profile]:
    """The model that the request names, or the default one, and its profile; raises InputError, UnknownNameError."""
    model = find_model(settings().catalogue_path, request.model or settings().model)
    profile = request.profile or default_profile(model, samples=needs.samples)
    check_model(model)
    check_profile(model, profile)
    check_capabilities(model, needs.capabilities)
    return model, profile


def _choose_evidence_engines(needs: Needs, request: RunRequest, model: str) -> EvidenceEngines:
    """Those that the request names, or the default ones; empty where the system needs none.

    model: the identity of the run's language model. Raises InputError and its kinds, NotInstalledError.
    """
    store = KnowledgeStore(settings().knowledge_path)
    knowledge: dict[str, str] = {source: store.revision(source) for source in needs.knowledge}
    if not needs.weighs:
        if request.embedder or request.entailer:
            raise InputError(f"the system {request.system} compares no sentences: name no embedder and no entailer")
        return EvidenceEngines(knowledge=knowledge)
    embedder = find_embedder(settings().catalogue_path, request.embedder)
    entailer = find_entailer(settings().catalogue_path, request.entailer)
    check_here(f"the embedder {embedder.name}", embedder.engine)
    check_here(f"the entailer {entailer.name}", entailer.engine)
    return EvidenceEngines(
        embedder_name=embedder.name,
        embedder=embedder.identity(),
        entailer_name=entailer.name,
        entailer=entailer.identity(model),
        knowledge=knowledge,
        notes=tuple(note for note in (embedder.instead, entailer.instead) if note),
    )
