"""Composition of a run from what its request names: everything that decides its results is pinned."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from cotrail.configuration.settings import settings
from cotrail.core.binding import Binding, with_engines
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.ports.embedder import EMBEDDER
from cotrail.core.ports.entailer import ENTAILER
from cotrail.core.ports.language_model import Profile
from cotrail.core.questions import GoldParagraph, Question
from cotrail.engines.knowledge.store import KnowledgeStore
from cotrail.engines.language_models.catalogue import ModelSpec, default_profile, find_model, identity
from cotrail.errors import InputError
from cotrail.models.commands.new_runs import Submission
from cotrail.services.runs.labels import labels_of
from cotrail.services.runs.provenance import STAND_INS, versions
from cotrail.services.runs.requests import RunRequest
from cotrail.services.runs.run_engines import check_language_model, choose_engines
from cotrail.services.runs.system_settings import ConfiguredSystem
from cotrail.systems.spec import Needs


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
    engines = choose_engines(system.needs, request, model, profile)
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
        id=_new_id(system.spec.name),
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
        provenance={**versions(), **provenance, **({STAND_INS: notes} if notes else {})},
        priority=request.priority,
        served=model.engine.served and all(engine.served for engine in engines.values()),
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
    check_language_model(model, profile, needs.capabilities)
    return model, profile
