"""What a person asks for with `cotrail submit`, and the checks before anything is written."""

import hashlib
import secrets
import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from cli.provenance import provenance
from cotrail.actions import Binding
from cotrail.datasets import load_questions
from cotrail.errors import InputError
from cotrail.generation.catalogue import find_model, identity
from cotrail.generation.generator import Profile
from cotrail.prompting.demonstrations import in_form, read_demonstrations
from cotrail.prompting.prompt import AnswerForm, Demonstrations
from cotrail.questions import Question
from cotrail.retrieval.tantivy import TantivyRetriever, open_corpus
from cotrail.systems import SystemSpec, find_system
from cotrail.systems.settings import Reader
from models.submission import Submission
from tasks.settings import settings

Positive = Annotated[int, Meta(ge=1)]
Whole = Annotated[int, Meta(ge=0, le=2**31 - 1)]

PATHS = ("questions", "demonstrations")
"""The keys of a run file that are paths, relative to that file."""


class RunRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run as it is asked for, by options or in a TOML file of the same names.

    retrieval_count, max_sentences, reader: short for the system's settings of that name; `settings` holds any others.
    limit: only so many questions, from the file's beginning.
    """

    system: str
    dataset: str
    questions: str
    reader: Reader | None = None
    corpus: str | None = None
    demonstrations: str | None = None
    limit: Positive | None = None
    retrieval_count: Positive | None = None
    max_sentences: Positive | None = None
    model: str | None = None
    seed: Whole = 0
    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.0
    profile: Profile = "fast"
    settings: dict[str, Any] = {}


class Prepared(Struct, frozen=True, kw_only=True):
    """A run that can be submitted: everything that can be wrong was looked at."""

    submission: Submission
    questions: tuple[Question, ...]


def read_run_file(path: Path) -> dict[str, Any]:
    """The keys of a TOML file as they stand there, its paths made independent of the working directory."""
    try:
        given = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}); check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} isn't TOML: {error}") from error
    for key in PATHS:
        if isinstance(given.get(key), str):
            given[key] = str(path.parent / given[key])
    return given


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
    configured = system_settings(spec, request)
    model_name = request.model or settings().model
    model = find_model(settings().catalogue_path, model_name)
    retriever = _corpus(spec, request)
    shots = _shots(spec, request, configured)
    questions = _questions(request, retriever)
    binding = Binding(
        model=identity(model),
        profile=request.profile,
        temperature=request.temperature,
        seed=request.seed,
        corpus=retriever.revision if retriever and spec.retrieves else "",
    )
    day = today or date.today()
    submission = Submission(
        id=f"{spec.name}-{day:%Y%m%d}-{secrets.token_hex(3)}",
        system=spec.name,
        system_version=spec.version,
        settings=configured,
        dataset=request.dataset,
        corpus=request.corpus if spec.retrieves else None,
        model_name=model_name,
        binding=binding,
        shots=shots,
        provenance={
            **provenance(),
            "request": msgspec.to_builtins(request),
            "files": {key: _described(getattr(request, key)) for key in PATHS if getattr(request, key)},
        },
    )
    return Prepared(submission=submission, questions=questions)


def system_settings(spec: SystemSpec, request: RunRequest) -> dict[str, Any]:
    """The system's settings with every default spelled out; InputError names what it doesn't have or take."""
    defaults: dict[str, Any] = msgspec.to_builtins(spec.settings())
    asked = _merged({}, request.settings)
    for option, path in _SHORT.items():
        value = getattr(request, option)
        if value is None:
            continue
        if not _has(defaults, path):
            raise InputError(f"the system {spec.name} has no {option}; leave it out or take another system")
        asked = _merged(asked, _nested(path, value))
    try:
        return dict(msgspec.to_builtins(msgspec.convert(_merged(defaults, asked), spec.settings)))
    except msgspec.ValidationError as error:
        raise InputError(f"settings of {spec.name}: {_key(error)}") from error


_SHORT = {
    "reader": ("reading", "reader"),
    "retrieval_count": ("retrieval", "retrieval_count"),
    "max_sentences": ("max_sentences",),
}
"""Where a system has, if at all, what the options are short for."""


def _has(tree: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    head, *rest = path
    return head in tree and (not rest or _has(tree[head], tuple(rest)))


def _nested(path: tuple[str, ...], value: object) -> dict[str, Any]:
    head, *rest = path
    return {head: _nested(tuple(rest), value) if rest else value}


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both trees in one, `over` winning."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if both else value
    return merged


def _key(error: msgspec.ValidationError) -> str:
    return str(error).replace("Object contains unknown field", "there is no key").replace("$.", "")


def _corpus(spec: SystemSpec, request: RunRequest) -> TantivyRetriever | None:
    if request.corpus is not None:
        return open_corpus(settings().corpora_path, request.corpus)
    if spec.retrieves:
        raise InputError(f"the system {spec.name} searches a corpus; name one with --corpus (`cotrail index` makes it)")
    return None


def _shots(spec: SystemSpec, request: RunRequest, configured: Mapping[str, Any]) -> dict[AnswerForm, Demonstrations]:
    """The demonstrations in each form that the system asks for; none where no file is named."""
    forms = {AnswerForm(configured["reading"]["reader"])} | ({AnswerForm.COT} if spec.chains else set())
    if request.demonstrations is None:
        return dict.fromkeys(sorted(forms), Demonstrations())
    read = read_demonstrations(Path(request.demonstrations))
    return {form: in_form(read, form) for form in sorted(forms)}


def _questions(request: RunRequest, retriever: TantivyRetriever | None) -> tuple[Question, ...]:
    lookup = retriever.paragraphs if retriever else None
    return load_questions(request.dataset, Path(request.questions), lookup)[: request.limit]


def _described(path: str) -> dict[str, str]:
    with Path(path).open("rb") as file:
        return {"path": str(Path(path).absolute()), "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
