"""The second stage of a submission: what a request names is found, and its files are read.

A request (`requests`) is resolved here, checked (`checking`) and pinned (`pinning`). What isn't there is refused here;
whether what was found can carry out the run is the next stage's.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from cotrail.configuration.settings import settings
from cotrail.core.binding import MODEL
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.money import Prices
from cotrail.core.ports.encoders import RELEVANCE_RATER
from cotrail.core.ports.retriever import Corpus
from cotrail.core.ports.role import EngineRole
from cotrail.core.questions import Question
from cotrail.data.corpora.paragraph_ids import paragraphs_in, titled_in
from cotrail.data.datasets.loading import form_of, load_questions
from cotrail.data.demonstrations.self_written import read_prompts
from cotrail.data.demonstrations.sets import in_form, listed_set, read_demonstrations
from cotrail.engines.engine_catalogue import NamedEngine, ServerTable
from cotrail.engines.language_models.catalogue import ModelSpec, default_profile
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.providers import price_of
from cotrail.engines.models_file import LANGUAGE_MODEL
from cotrail.engines.retrieval.retrieve_server import RemoteCorpus
from cotrail.errors import DemonstrationError, InputError
from cotrail.evaluation.metrics.corpus_coverage import coverage, located
from cotrail.services.access.grants import find_granted_engine, find_granted_model, meant, seen_corpora
from cotrail.services.runs.configuring import (
    ConfiguredSystem,
    ResolvedRun,
    RoleEngine,
    configure,
    find_answering,
    has_batches,
)
from cotrail.services.runs.requests import AskRequest, RunRequest
from cotrail.systems.registry import SYSTEMS, find_system
from cotrail.systems.spec import Needs


def resolve(request: RunRequest) -> ResolvedRun:
    """All that a request for a run of questions names; raises InputError and its kinds."""
    demonstrations = read_shown(request.demonstrations, request.sets, request.set_number)
    titles = read_shown(request.title_demonstrations, request.sets, request.set_number)
    system = configure(find_answering(request.system), request, instructed=bool(demonstrations.instruction))
    # A system that searches no corpus may name some, from which gold paragraphs that a file gives by id are read.
    corpora = _open_corpora(system, request.all_corpora)
    questions, missing = _read_questions(request, corpora)
    return resolve_engines(
        request,
        system,
        corpora={name: corpus.revision for name, corpus in corpora.items()},
        shots=make_shots(system.needs, demonstrations, titles) | read_words(request.prompt, system),
        questions=questions,
        missing_gold=missing,
    )


def resolve_engines(
    request: RunRequest,
    system: ConfiguredSystem,
    *,
    corpora: Mapping[str, str],
    shots: dict[AnswerForm, Demonstrations],
    questions: tuple[Question, ...] = (),
    missing_gold: int = 0,
) -> ResolvedRun:
    """The run with its models and engines, where all else is found; raises UnknownNameError and InputError."""
    model = find_granted_model(request.model or settings().model)
    engines = {role.name: _find_engine(role, request, model) for role in system.needs.engines}
    # An engine behind a server isn't deterministic, so that its run can't be either.
    served = any(isinstance(each, NamedEngine) and isinstance(each.engine, ServerTable) for each in engines.values())
    samples = system.needs.samples and not served
    return ResolvedRun(
        request=request,
        system=system,
        model=model,
        profile=request.profile or default_profile(model, samples=samples),
        engines=engines,
        prices=_prices(model, engines, request),
        corpora=corpora,
        shots=shots,
        questions=questions,
        missing_gold=missing_gold,
    )


def _find_engine(role: EngineRole, request: RunRequest, model: ModelSpec) -> RoleEngine:
    reranks = role.name == RELEVANCE_RATER.name and request.rerank
    name = reranks or request.engines.get(role.name)
    if name is None and not role.has_default:
        raise InputError(
            f"with these settings the system {request.system} {role.work}: name its `{role.name}`, a built-in one or "
            f"one of the tables `[{role.kind}s.NAME]` of models.toml"
        )
    if role.kind == LANGUAGE_MODEL:
        return model if name is None else find_granted_model(name)
    return find_granted_engine(role.kind, name)


def prices_of(models: Mapping[str, ModelSpec], *, batch: bool = False) -> Prices:
    """The prices of those of these models, by their roles, that are hosted; batch: in batches."""
    endpoints = {role: model.engine for role, model in models.items() if isinstance(model.engine, Endpoint)}
    found = {role: price_of(endpoint, datetime.now(UTC), batch=batch) for role, endpoint in endpoints.items()}
    return {role: price for role, price in found.items() if price or endpoints[role].is_hosted}


def _prices(model: ModelSpec, engines: Mapping[str, RoleEngine], request: RunRequest) -> Prices:
    """The prices of a run's models, of those in batches that it asks so."""
    models = {MODEL: model, **{role: each for role, each in engines.items() if isinstance(each, ModelSpec)}}
    batched = {role: each for role, each in models.items() if request.serving == "batch" and has_batches(each.engine)}
    return {**prices_of(models), **prices_of(batched, batch=True)}


def _open_corpora(system: ConfiguredSystem, names: Sequence[str]) -> dict[str, Corpus]:
    """The corpora that a run names, of which a system that searches must have one."""
    if system.needs.corpus and not names:
        raise InputError(
            f"the system {system.spec.name} searches a corpus; name one with --corpus, or as `corpus` in a file "
            "(`cotrail index` makes one)"
        )
    seen = seen_corpora()
    return {seen.stored(name): seen.open(name) for name in names}


def _read_questions(request: RunRequest, corpora: Mapping[str, Corpus]) -> tuple[tuple[Question, ...], int]:
    """The questions of the request's file, and how many of their gold paragraphs the corpora are known to lack; or the
    one asked.
    """
    if request.asked is not None:
        return (request.asked,), 0
    path, official = Path(request.questions), Path(request.official) if request.official else None
    here = [corpus for corpus in corpora.values() if not isinstance(corpus, RemoteCorpus)]  # servers only search
    lookup = partial(paragraphs_in, here)
    questions = load_questions(request.dataset, path, lookup if here else None, official, request.map)
    questions = questions[: request.limit]
    if not here:
        return questions, 0
    titled = partial(titled_in, here)
    questions = located(questions, titled, snippets=form_of(request.dataset, path, request.map).snippets)
    return questions, len(coverage(questions, titled, lookup).missing) if len(here) == len(corpora) else 0


# Few-shot demonstrations of a run: read from its files, and shown in each form that its system needs.
def read_shown(path: str | None, sets: str | None, number: int | None) -> Demonstrations:
    """The demonstrations of a file that a run shows: all, or the set of that number; none without a file."""
    if sets is None and number is not None:
        raise InputError("a set_number needs sets; name a file of lists of ids, or `released`")
    if path is None:
        return Demonstrations()
    demonstrations = read_demonstrations(Path(path))
    if sets is None:
        return demonstrations
    try:
        return listed_set(demonstrations, sets, number or 1)
    except DemonstrationError as error:
        raise DemonstrationError(f"{path}: {error}") from error


def make_shots(
    needs: Needs, demonstrations: Demonstrations, titles: Demonstrations
) -> dict[AnswerForm, Demonstrations]:
    """The demonstrations in each form that the system shows, its own, and those that name pages, if there are any."""
    return complete_shots(needs, {form: in_form(demonstrations, form) for form in sorted(needs.forms)}, titles)


def read_words(path: str | None, system: ConfiguredSystem) -> dict[AnswerForm, Demonstrations]:
    """The words of prompts that a run brings in a file or a folder; InputError where its system takes none."""
    if path is None:
        return {}
    if not system.needs.words:
        raise InputError("the system takes no prompt of the run's; leave out `prompt`, or give `demonstrations`")
    return {AnswerForm.PROMPT: read_prompts(Path(path), system.needs.words, system.spec.authors_words)}


def complete_shots(
    needs: Needs, demonstrations: dict[AnswerForm, Demonstrations], titles: Demonstrations
) -> dict[AnswerForm, Demonstrations]:
    """The demonstrations given in each form, with the system's own, and those that name pages, if there are any."""
    shots = demonstrations | dict(needs.brought)
    return shots | {AnswerForm.TITLES: titles} if titles.items else shots


# A question that is asked alone: of what it may be asked, and what it needs in addition to its words.


def with_corpus(request: AskRequest) -> AskRequest:
    """The request with a corpus where its system searches one and none is named: the only one that there is."""
    if request.all_corpora or not configure(find_system(request.system), request).needs.corpus:
        return request
    names = meant(corpus_names())
    if not names:
        raise InputError("there is no corpus to search; `cotrail index` makes one, and the system `direct` needs none")
    if len(names) > 1:
        raise InputError(f"there are several corpora; name one as `corpus`: {', '.join(names)}")
    return replace(request, corpus=names[0])


def converses(request: AskRequest) -> bool:
    """Whether the system's prompts are conversations, to which a question may bring what was said before it."""
    return "turns" in configure(find_system(request.system), request).needs.capabilities


# The systems that can be asked a single question without anything else, and the corpora that they may search.


def askable_systems() -> list[tuple[str, bool]]:
    """Their names, and whether each searches a corpus; with default settings they need no further engine or source."""
    found = []
    for name in dict.fromkeys(spec.name for spec in SYSTEMS if "@" not in spec.name):
        spec = find_system(name)
        needs = spec.needs(msgspec.convert(msgspec.to_builtins(spec.settings()), spec.settings))
        is_whole = not (needs.evidence or needs.knowledge) and all(role.has_default for role in needs.engines)
        if is_whole and not spec.judges:
            found.append((name, needs.corpus))
    return found


def corpus_names() -> list[str]:
    """The names of the corpora."""
    return sorted(seen_corpora().manifests())
