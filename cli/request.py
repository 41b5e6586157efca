"""What a person asks for with `cotrail submit`, and the checks before anything is written."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from cli.provenance import INSTEAD, versions
from cli.weighers import choose_weighers
from configuration.settings import settings
from cotrail.common.toml_files import read_toml
from cotrail.core.binding import Binding
from cotrail.core.ports.language_model import Profile
from cotrail.core.ports.retriever import Corpus
from cotrail.core.prompts import AnswerForm, Demonstrations
from cotrail.core.questions import GoldParagraph, Question
from cotrail.data.datasets.loading import has_snippets, load_questions
from cotrail.data.demonstrations.files import in_form, read_demonstrations
from cotrail.data.demonstrations.sets import RELEASED, listed_set
from cotrail.engines.language_models.catalogue import check_profile, default_profile, find_model, identity
from cotrail.engines.language_models.splitting import pinned
from cotrail.errors import DemonstrationError, InputError
from cotrail.evaluation.metrics.corpus_coverage import coverage, located
from cotrail.faithfulness.tasks import TASK_OF, Task
from cotrail.systems import SystemSpec, find_system
from cotrail.systems.needs import Needs
from cotrail.systems.rules import Rules, rule_settings
from cotrail.systems.settings import Positive, Reader, Variant
from models.commands.submission import Submission

Whole = Annotated[int, Meta(ge=0, le=2**31 - 1)]
MAX_PRIORITY = 2**31 - 1
Priority = Annotated[int, Meta(ge=-MAX_PRIORITY, le=MAX_PRIORITY)]

PATHS = ("questions", "official", "demonstrations", "title_demonstrations", "sets")
"""The keys of a run file that are paths, relative to that file."""


class RunRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run as it is asked for, by options or in a TOML file of the same names.

    official: the dataset's own file, for processed questions that lack what it has.
    title_demonstrations: those of the step that names pages, for questions that pin a passage (IIRC).
    sets: a JSON file of lists of ids, or `released`; then the list of that `set_number`, from 1, says which of the
        demonstrations are shown and in which order.
    rules: `paper` or `released`, which `settings` then overrule.
    retrieval_count, max_sentences, reader, task, chains, variant: short for the system's settings of that name;
        `settings` holds any others.
    embedder, entailer: the models that compare sentences, for systems that weigh evidence.
    limit: only so many questions, from the file's beginning.
    priority: questions of runs with a higher one begin first.
    """

    system: str
    dataset: str
    questions: str
    official: str | None = None
    reader: Reader | None = None
    rules: Rules = "paper"
    corpus: str | None = None
    demonstrations: str | None = None
    title_demonstrations: str | None = None
    sets: str | None = None
    set_number: Positive | None = None
    limit: Positive | None = None
    retrieval_count: Positive | None = None
    max_sentences: Positive | None = None
    task: Task | None = None
    chains: Positive | None = None
    variant: Variant | None = None
    model: str | None = None
    embedder: str | None = None
    entailer: str | None = None
    seed: Whole = 0
    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.0
    profile: Profile | None = None
    priority: Priority = 0
    settings: dict[str, Any] = {}


class Prepared(Struct, frozen=True, kw_only=True):
    """A run that can be submitted: everything that can be wrong was looked at.

    missing_gold: how many gold paragraphs of the questions the corpus lacks, which no system can then find.
    """

    submission: Submission
    questions: tuple[Question, ...]
    missing_gold: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """What serves in the place of what the paper has, and why."""
        return tuple(self.submission.provenance.get(INSTEAD, ()))


def read_run_file(path: Path) -> dict[str, Any]:
    """The keys of a TOML file as they stand there, its paths made independent of the working directory."""
    given = read_file(path)
    for key in PATHS:
        if isinstance(given.get(key), str) and (key, given[key]) != ("sets", RELEASED):
            given[key] = str(path.parent / given[key])
    return given


def read_file(path: Path) -> dict[str, Any]:
    """What a TOML file holds; InputError where it can't be read."""
    try:
        return read_toml(path)
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}); check the path") from error


def make_request(given: Mapping[str, Any]) -> RunRequest:
    """The request, its types and bounds checked; InputError names the key."""
    for key in ("system", "dataset", "questions"):
        if given.get(key) is None:
            raise InputError(f"no {key} given; name it with --{key} or in the run file")
    unknown = sorted(given.keys() - set(RunRequest.__struct_fields__))
    if unknown:
        known = ", ".join(RunRequest.__struct_fields__)
        raise InputError(f"there is no key {unknown[0]!r} in a run file; there are: {known}")
    try:
        return msgspec.convert(dict(given), RunRequest)
    except msgspec.ValidationError as error:
        raise InputError(f"the run can't be submitted so: {_key(error)}") from error


def prepare(request: RunRequest, *, today: date | None = None) -> Prepared:
    """Checks all that the request names and reads its files; raises InputError and its kinds."""
    spec = find_system(request.system)
    demonstrations = read_shown(request.demonstrations, request.sets, request.set_number)
    titles = read_shown(request.title_demonstrations, request.sets, request.set_number)
    configured = system_settings(spec, request, instructed=bool(demonstrations.instruction))
    needs = needs_of(spec, configured)
    retriever = open_retriever(spec, needs, request.corpus)
    lookup = retriever.paragraphs if retriever else None
    path, official = Path(request.questions), Path(request.official) if request.official else None
    questions = load_questions(request.dataset, path, lookup, official)[: request.limit]
    missing = 0
    if retriever:
        if needs.evidence:
            check_evidence(questions, path)
        questions = located(questions, retriever.titled, snippets=has_snippets(request.dataset, path))
        missing = len(coverage(questions, retriever.titled).missing)
    return Prepared(
        submission=compose(
            request,
            spec=spec,
            configured=configured,
            needs=needs,
            retriever=retriever,
            shots=make_shots(needs, demonstrations, titles),
            provenance={
                "request": msgspec.to_builtins(request),
                "files": {key: described(path) for key, path in _files(request).items()},
            },
            today=today or date.today(),
        ),
        questions=questions,
        missing_gold=missing,
    )


def compose(
    request: RunRequest,
    *,
    spec: SystemSpec,
    configured: dict[str, Any],
    needs: Needs,
    retriever: Corpus | None,
    shots: dict[AnswerForm, Demonstrations],
    provenance: Mapping[str, Any],
    today: date,
) -> Submission:
    """The run as it is stored, from what its request was found to name."""
    model_name = request.model or settings().model
    model = find_model(settings().catalogue_path, model_name)
    profile = request.profile or default_profile(model, samples=needs.samples)
    check_profile(model, profile)
    model_identity = identity(model)
    weighers = choose_weighers(needs, request, model_identity)
    instead = {INSTEAD: weighers.notes} if weighers.notes else {}
    return Submission(
        id=f"{spec.name}-{today:%Y%m%d}-{secrets.token_hex(3)}",
        system=spec.name,
        system_version=spec.version,
        settings=configured,
        dataset=request.dataset,
        corpus=request.corpus if needs.corpus else None,
        model_name=model_name,
        embedder_name=weighers.embedder_name,
        entailer_name=weighers.entailer_name,
        binding=Binding(
            model=model_identity,
            profile=profile,
            temperature=request.temperature,
            seed=request.seed,
            corpus=retriever.revision if retriever and needs.corpus else "",
            embedder=weighers.embedder,
            entailer=weighers.entailer,
            knowledge=weighers.knowledge,
        ),
        shots=shots,
        provenance={**versions(), **provenance, **instead},
        priority=request.priority,
    )


def system_settings(spec: SystemSpec, request: RunRequest, *, instructed: bool = False) -> dict[str, Any]:
    """The system's settings with every default spelled out; InputError names what it doesn't have or take.

    instructed: whether the demonstrations have an instruction before the question.
    """
    defaults: dict[str, Any] = msgspec.to_builtins(spec.settings())
    given = rule_settings(request.rules, defaults, instructed=instructed)
    if request.dataset in TASK_OF and "task" in defaults:
        given |= {"task": TASK_OF[request.dataset]}
    asked = merged(given, request.settings)
    for option, paths in _SHORT.items():
        value = getattr(request, option)
        if value is None:
            continue
        path = next((path for path in paths if _has(defaults, path)), None)
        if path is None:
            raise InputError(f"the system {spec.name} has no {option}; leave it out or take another system")
        asked = merged(asked, _nested(path, value))
    try:
        configured = dict(msgspec.to_builtins(msgspec.convert(merged(defaults, asked), spec.settings)))
    except msgspec.ValidationError as error:
        raise InputError(f"settings of {spec.name}: {_key(error)}") from error
    return configured | {key: pinned(configured[key]) for key in ("splitter",) if key in configured}


_SHORT: dict[str, tuple[tuple[str, ...], ...]] = {
    "reader": (("reading", "reader"),),
    "retrieval_count": (("retrieval", "retrieval_count"), ("retrieval_count",)),
    "max_sentences": (("max_sentences",),),
    "task": (("task",),),
    "chains": (("chains",),),
    "variant": (("variant",),),
}
"""Where a system has, if at all, what the options are short for: the first of these places that there is."""


def _has(tree: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    head, *rest = path
    return head in tree and (not rest or _has(tree[head], tuple(rest)))


def _nested(path: tuple[str, ...], value: object) -> dict[str, Any]:
    head, *rest = path
    return {head: _nested(tuple(rest), value) if rest else value}


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both trees in one, `over` winning."""
    tree = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(tree.get(key), dict)
        tree[key] = merged(tree[key], value) if both else value
    return tree


def _key(error: msgspec.ValidationError) -> str:
    return str(error).replace("Object contains unknown field", "there is no key").replace("$.", "")


def needs_of(spec: SystemSpec, configured: Mapping[str, Any]) -> Needs:
    """What a run of the system with these settings needs."""
    return spec.needs(msgspec.convert(configured, spec.settings))


def open_retriever(spec: SystemSpec, needs: Needs, corpus: str | None) -> Corpus | None:
    """The corpus that a run names, which a system that searches one must have."""
    if corpus is not None:
        return settings().corpus_store.open(corpus)
    if needs.corpus:
        raise InputError(f"the system {spec.name} searches a corpus; name one with --corpus (`cotrail index` makes it)")
    return None


def check_evidence(questions: Sequence[Question], path: Path) -> None:
    """Raises InputError where no question has the paragraphs that its dataset names as evidence."""
    if not any(isinstance(each, GoldParagraph) for question in questions for each in question.evidence):
        raise InputError(
            f'{path}: knowledge = ["evidence"] looks at the paragraphs that the dataset names as evidence, and the '
            "corpus has none of them: search StrategyQA's own (`cotrail index strategyqa_train_paragraphs.json --name "
            'evidence`), or set evidence = "pages" to search the pages of those titles'
        )


def make_shots(
    needs: Needs, demonstrations: Demonstrations, titles: Demonstrations
) -> dict[AnswerForm, Demonstrations]:
    """The demonstrations in each form that the system shows, its own, and those that name pages, if there are any."""
    shots = {form: in_form(demonstrations, form) for form in sorted(needs.forms)} | dict(needs.brought)
    return shots | {AnswerForm.TITLES: titles} if titles.items else shots


def read_shown(path: str | None, sets: str | None, number: int | None) -> Demonstrations:
    """The demonstrations of a file that a run shows: all, or the set of that number; none without a file."""
    if sets is None and number is not None:
        raise InputError("a set_number needs sets; name a file of lists of ids, or `released`")
    if path is None:
        return Demonstrations()
    read = read_demonstrations(Path(path))
    if sets is None:
        return read
    try:
        return listed_set(read, sets, number or 1)
    except DemonstrationError as error:
        raise DemonstrationError(f"{path}: {error}") from error


def _files(request: RunRequest) -> dict[str, Path]:
    """The files that the request names, by its keys."""
    named = {key: getattr(request, key) for key in PATHS}
    return {key: Path(name) for key, name in named.items() if name and (key, name) != ("sets", RELEASED)}


def described(path: Path) -> dict[str, str]:
    """A file as a run records it: where it was, and the SHA-256 of its content."""
    try:
        with path.open("rb") as file:
            return {"path": str(path.absolute()), "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}); check the path") from error
