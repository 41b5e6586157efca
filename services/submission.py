"""Submission of runs: everything that a request names is checked before anything is written."""

from pathlib import Path

import msgspec
from sqlalchemy import Engine

from cotrail.configuration.corpora import corpora_of
from cotrail.configuration.settings import settings
from cotrail.core.ports.retriever import Corpus
from cotrail.data.datasets.loading import form_of, load_questions
from cotrail.errors import InputError
from cotrail.evaluation.metrics.corpus_coverage import coverage, located
from cotrail.models.commands import submission
from cotrail.services.composing import check_evidence, compose
from cotrail.services.prepared_run import PreparedRun
from cotrail.services.provenance import file_record
from cotrail.services.requests import LABELS, PATHS, RunRequest
from cotrail.services.runnable import check_splitter
from cotrail.services.shots import make_shots, read_shown, read_words
from cotrail.services.system_settings import ConfiguredSystem, configure
from cotrail.systems.registry import find_system


def prepare(request: RunRequest) -> PreparedRun:
    """Checks all that the request names and reads its files; raises InputError and its kinds."""
    demonstrations = read_shown(request.demonstrations, request.sets, request.set_number)
    titles = read_shown(request.title_demonstrations, request.sets, request.set_number)
    if empty := next((field for field in PATHS if getattr(request, field) == ""), None):
        raise InputError(f"`{empty}` is empty; name a file, or leave it out")
    if request.sets and not (request.demonstrations or request.title_demonstrations):
        raise InputError(
            "`sets` says which of the demonstrations are shown, and there are none; name `demonstrations` too"
        )
    system = configure(find_system(request.system), request, instructed=bool(demonstrations.instruction))
    check_splitter(system.settings)
    # A system that searches no corpus may name one, from which gold paragraphs that a file gives by id are read.
    corpus = _open_corpus(system, request.corpus)
    path, official = Path(request.questions), Path(request.official) if request.official else None
    lookup = corpus.paragraphs if corpus else None
    questions = load_questions(request.dataset, path, lookup, official)[: request.limit]
    missing = 0
    if corpus:
        if system.needs.evidence:
            check_evidence(questions, path)
        questions = located(questions, corpus.titled, snippets=form_of(request.dataset, path).snippets)
        missing = len(coverage(questions, corpus.titled).missing)
    composed = compose(
        request,
        system,
        corpus_revision=corpus.revision if corpus else "",
        shots=make_shots(system.needs, demonstrations, titles) | read_words(request.prompt, system.needs),
        provenance={
            "request": {key: value for key, value in msgspec.to_builtins(request).items() if key not in LABELS},
            "files": {field: file_record(path) for field, path in request.files.items()},
        },
    )
    return PreparedRun(submission=composed, questions=questions, missing_gold=missing)


def submit(engine: Engine, prepared: PreparedRun) -> str:
    """Records the run, which workers then carry out; returns its id."""
    return submission.submit(engine, prepared.submission, prepared.questions, find_system)


def _open_corpus(system: ConfiguredSystem, name: str | None) -> Corpus | None:
    """The corpus that a run names, which a system that searches one must have."""
    if name is not None:
        return corpora_of(settings()).open(name)
    if system.needs.corpus:
        raise InputError(
            f"the system {system.spec.name} searches a corpus; name its `corpus` (`cotrail index` makes one)"
        )
    return None
