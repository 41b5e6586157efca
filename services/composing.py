"""Composition of a run from what its request names: everything that decides its results is pinned."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from msgspec import Struct

from configuration.settings import settings
from cotrail.core.binding import Binding
from cotrail.core.prompts import AnswerForm, Demonstrations
from cotrail.core.questions import GoldParagraph, Question
from cotrail.engines.language_models.catalogue import check_profile, default_profile, find_model, identity
from cotrail.errors import InputError
from models.commands.new_runs import Submission
from services.evidence_engines import choose_evidence_engines
from services.provenance import INSTEAD, versions
from services.requests import RunRequest
from services.system_settings import ConfiguredSystem


class PreparedRun(Struct, frozen=True, kw_only=True):
    """A run that can be submitted: all checks have passed.

    missing_gold: how many gold paragraphs of the questions the corpus lacks, which no system can then find.
    """

    submission: Submission
    questions: tuple[Question, ...]
    missing_gold: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """Where something stands in for what the paper has, and why."""
        return tuple(self.submission.provenance.get(INSTEAD, ()))


def compose(
    request: RunRequest,
    system: ConfiguredSystem,
    *,
    corpus_revision: str,
    shots: dict[AnswerForm, Demonstrations],
    provenance: Mapping[str, Any],
) -> Submission:
    """The run as it is stored, its models found and identified; raises InputError and its kinds, NotInstalledError.

    corpus_revision: of the corpus that the request names; a system that searches none pins none.
    """
    model_name = request.model or settings().model
    model = find_model(settings().catalogue_path, model_name)
    profile = request.profile or default_profile(model, samples=system.needs.samples)
    check_profile(model, profile)
    model_identity = identity(model)
    engines = choose_evidence_engines(system.needs, request, model_identity)
    instead = {INSTEAD: engines.notes} if engines.notes else {}
    return Submission(
        id=f"{system.spec.name}-{date.today():%Y%m%d}-{secrets.token_hex(3)}",
        system=system.spec.name,
        system_version=system.spec.version,
        settings=system.settings,
        dataset=request.dataset,
        corpus=request.corpus if system.needs.corpus else None,
        model_name=model_name,
        embedder_name=engines.embedder_name,
        entailer_name=engines.entailer_name,
        binding=Binding(
            model=model_identity,
            profile=profile,
            temperature=request.temperature,
            seed=request.seed,
            corpus=corpus_revision if system.needs.corpus else "",
            embedder=engines.embedder,
            entailer=engines.entailer,
            knowledge=engines.knowledge,
        ),
        shots=shots,
        provenance={**versions(), **provenance, **instead},
        priority=request.priority,
    )


def check_evidence(questions: Sequence[Question], path: Path) -> None:
    """Raises InputError where no question has the paragraphs that its dataset names as evidence."""
    if not any(isinstance(each, GoldParagraph) for question in questions for each in question.evidence):
        raise InputError(
            f'{path}: knowledge = ["evidence"] looks at the paragraphs that the dataset names as evidence, and the '
            "corpus has none of them: search StrategyQA's own (`cotrail index strategyqa_train_paragraphs.json --name "
            'evidence`), or set evidence = "pages" to search the pages of those titles'
        )
