"""Requests for runs: their fields and bounds, given by options, a TOML file or a client of the API."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from cotrail.common import nearest
from cotrail.common.numbers import Positive
from cotrail.common.refusals import refusal
from cotrail.common.toml_files import read_toml
from cotrail.core.ports.language_model import Profile
from cotrail.data.demonstrations.sets import RELEASED
from cotrail.errors import InputError
from cotrail.faithfulness.tasks import Task
from cotrail.systems.parts.reader import Reader
from cotrail.systems.parts.rules import Rules
from cotrail.systems.rethinking.settings import Variant

Whole = Annotated[int, Meta(ge=0, le=2**31 - 1)]
MAX_PRIORITY = 2**31 - 1
Priority = Annotated[int, Meta(ge=-MAX_PRIORITY, le=MAX_PRIORITY)]

REQUIRED = ("system", "dataset", "questions")
"""The fields that have no default."""

PATHS = ("questions", "official", "demonstrations", "title_demonstrations", "sets", "prompt")
"""The fields that are paths; in a run file they are relative to that file."""

LABELS = ("name", "tags")
"""The fields that aren't part of what a run records of its request, since they may be changed later."""


class RunRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request for a run; a run file has the same keys.

    official: the dataset's own file, for processed questions that lack what it has.
    corpus: the name of the corpus that is searched; corpora: those of several, of which a search means the first unless
        it names one.
    title_demonstrations: those of the step that names pages, for questions that pin a passage (IIRC).
    sets: a JSON file of lists of ids, or `released`; the list of that `set_number`, from 1, says which of the
        demonstrations are shown and in which order.
    prompt: the words of the system's prompt, with `{question}` where the question stands; its own unless given.
    rules: `paper` or `released`; `settings` overrule them.
    retrieval_count, max_sentences, reader, task, chains, variant: short for the system's settings of that name;
        `settings` holds any others.
    embedder, entailer: the models that compare sentences, for systems that weigh evidence.
    extractor, duplicate_rater, relevance_rater: the models that read answers out of paragraphs, find questions that ask
        the same, and score how far texts answer; a system that needs one has no default.
    limit: only this many questions, from the file's beginning.
    priority: questions of runs with a higher one begin first.
    name, tags: by which people find the run; they may be changed later and decide nothing.
    """

    system: str
    dataset: str
    questions: str
    official: str | None = None
    reader: Reader | None = None
    rules: Rules = "paper"
    corpus: str | None = None
    corpora: tuple[str, ...] = ()
    demonstrations: str | None = None
    title_demonstrations: str | None = None
    sets: str | None = None
    set_number: Positive | None = None
    prompt: str | None = None
    limit: Positive | None = None
    retrieval_count: Positive | None = None
    max_sentences: Positive | None = None
    task: Task | None = None
    chains: Positive | None = None
    variant: Variant | None = None
    model: str | None = None
    embedder: str | None = None
    entailer: str | None = None
    extractor: str | None = None
    duplicate_rater: str | None = None
    relevance_rater: str | None = None
    seed: Whole = 0
    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.0
    profile: Profile | None = None
    priority: Priority = 0
    name: str | None = None
    tags: tuple[str, ...] = ()
    settings: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.corpus is not None and self.corpora:
            raise ValueError("`corpus` names the only one, `corpora` several; give one of the two")

    @property
    def all_corpora(self) -> tuple[str, ...]:
        """The names of its corpora, each once."""
        return tuple(dict.fromkeys(self.corpora if self.corpus is None else (self.corpus,)))

    @property
    def files(self) -> dict[str, Path]:
        """The files that the request names, by its fields."""
        named = {field: getattr(self, field) for field in PATHS}
        return {field: Path(name) for field, name in named.items() if name and not _is_bundled(field, name)}


def check_keys(given: Mapping[str, Any], where: str = "") -> None:
    """Raises InputError for a key that no request has; it may be what is missing, in another spelling.

    where: the file that has the keys.
    """
    if unknown := sorted(given.keys() - set(RunRequest.__struct_fields__)):
        said = nearest.unknown("key", unknown[0], RunRequest.__struct_fields__)
        raise InputError(f"{f'{where}: ' if where else ''}{said}; `cotrail submit --help` has all")


def make_request(given: Mapping[str, Any], places: Mapping[str, str] = MappingProxyType({})) -> RunRequest:
    """The request with its types and bounds checked; InputError names the field.

    places: where fields were given, for errors: the name of a file, or an option.
    """
    check_keys(given)
    for field in REQUIRED:
        if given.get(field) is None:
            raise InputError(f"no {field} given; a request names its {', '.join(REQUIRED)}")
    try:
        return msgspec.convert(dict(given), RunRequest)
    except msgspec.ValidationError as error:
        said = refusal(error, RunRequest, given)
        key = next((key for key in places if said.startswith((f"`{key}`", f"`{key}.", f"`{key}["))), "")
        raise InputError(f"{places.get(key, 'this run')}: {said}; correct it") from error


def read_run_file(path: Path) -> dict[str, Any]:
    """The keys of a TOML file, its paths made independent of the working directory; InputError where it can't be read.

    The keys aren't checked yet, as a caller's own may overrule them (`make_request`).
    """
    given = read_toml_file(path)
    for key in PATHS:
        if isinstance(given.get(key), str) and not _is_bundled(key, given[key]):
            given[key] = str(path.parent / given[key])
    return given


def read_toml_file(path: Path) -> dict[str, Any]:
    """The keys and tables of a TOML file; InputError where it can't be read."""
    try:
        return read_toml(path)
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}); check the path") from error


def _is_bundled(field: str, name: str) -> bool:
    """Return whether the value is no path but names the demonstration sets that come with cotrail."""
    return field == "sets" and name == RELEASED
