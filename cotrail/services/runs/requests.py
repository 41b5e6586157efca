"""Requests for runs: their fields and bounds, given by options, a TOML file or a client of the API."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import FieldInfo, fields

from cotrail.common import nearest
from cotrail.common.humanize import Positive, RetrievalCount, Temperature
from cotrail.common.printable_text import is_blank
from cotrail.common.refusals import refusal
from cotrail.common.toml_files import read_toml
from cotrail.core.budgets import NO_BUDGET, Budget, Budgets
from cotrail.core.ports.encoders import ROLES
from cotrail.core.ports.language_model import Profile, Serving
from cotrail.core.questions import Question
from cotrail.core.repeats import Times
from cotrail.core.search_ways import SearchWay
from cotrail.errors import InputError
from cotrail.faithfulness.tasks import Task
from cotrail.services.library.named_files import PATH_FIELDS, RunFiles, is_bundled
from cotrail.systems.parts.reading import Reader
from cotrail.systems.parts.rules import Rules
from cotrail.systems.rethinking.settings import Variant

MAX_SEED = 2**31 - 1
RERANKED_HITS = 100
"""How many of a search's best hits are reranked unless a run says otherwise, as in BEIR (Thakur et al. 2021)."""

Whole = Annotated[int, Meta(ge=0, le=MAX_SEED)]
MAX_PRIORITY = 2**31 - 1
Priority = Annotated[int, Meta(ge=-MAX_PRIORITY, le=MAX_PRIORITY)]

REQUIRED_FIELDS = ("system", "dataset", "questions")
"""The fields that have no default."""

MOST_QUESTION = 200_000
"""The most characters of a question that is asked alone."""

LABEL_FIELDS = ("name", "tags")
"""The fields that aren't part of what a run records of its request, since they may be changed later."""

ENGINES_GROUP = "The model"
"""The group of the fields that name engines."""

_ABOUT: dict[str, dict[str, str]] = {
    name: {"group": group, "value": value, "meaning": meaning}
    for group, about in read_toml(Path(__file__).with_name("requests.toml")).items()
    for name, (value, meaning) in about.items()
}


def described(kind: type, field: FieldInfo) -> dict[str, str]:
    """What people read about a field of a request: its `group`, `value` and `meaning`; empty where nothing is said.

    value: what stands for its value, as in `--limit N`.
    """
    about = (each for each in getattr(field.type, "__metadata__", ()) if isinstance(each, Meta))
    own = next((each.extra for each in about if each.extra), {})
    if own or not issubclass(kind, RunRequest) or (kind is not RunRequest and field.name in kind.__annotations__):
        return own
    return _ABOUT.get(field.name, {})


class RunRequest(RunFiles, Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request for a run; a run file has the same keys, and `cotrail submit` an option for each field that has a group.

    retrieval_count, max_sentences, reader, task, chains and variant are short for the system's settings of that name;
    `settings` holds any others, and overrules `rules`. corpus is the only one of the corpora.
    """

    system: str
    dataset: str
    questions: str
    map: dict[str, str] = {}
    official: str | None = None
    corpus: str | None = None
    corpora: tuple[str, ...] = ()
    limit: Positive | None = None
    repeat: Times = 1
    reader: Reader | None = None
    rules: Rules = "paper"
    demonstrations: str | None = None
    title_demonstrations: str | None = None
    sets: str | None = None
    set_number: Positive | None = None
    prompt: str | None = None
    retrieval_count: RetrievalCount | None = None
    retriever: str | None = None
    filter: Annotated[str, Meta(min_length=1, max_length=10_000)] | None = None
    rerank: str | None = None
    rerank_depth: RetrievalCount | None = None
    max_sentences: Positive | None = None
    task: Task | None = None
    chains: Positive | None = None
    variant: Variant | None = None
    model: str | None = None
    profile: Profile | None = None
    engines: dict[str, str] = {}
    temperature: Temperature = 0.0
    seed: Whole = 0
    serving: Serving = "live"
    priority: Priority = 0
    question_budget: Budget = NO_BUDGET
    run_budget: Budget = NO_BUDGET
    until: str | None = None
    plan: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    settings: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.corpus is not None and self.corpora:
            raise ValueError("`corpus` names the only one, `corpora` several; give one of the two")
        if self.rerank_depth is not None and self.rerank is None:
            raise ValueError("`rerank_depth` says how many hits are reranked: name a rater as `rerank` too")
        _ = self.search_way.options  # a retriever that can't be read is refused
        if self.seed + self.repeat - 1 > MAX_SEED:
            raise ValueError(f"the last of {self.repeat} repeats has no seed: choose a `seed` further below {MAX_SEED}")

    @property
    def asked(self) -> Question | None:
        """The only question, where it is given in words and is in no file."""
        return None

    @property
    def search_way(self) -> SearchWay:
        """How its searches are made, apart from the model that reranks."""
        return SearchWay(
            retriever=self.retriever or "",
            reranked=(self.rerank_depth or RERANKED_HITS) if self.rerank else 0,
            filter=self.filter or "",
        )

    @property
    def all_corpora(self) -> tuple[str, ...]:
        """The names of its corpora, each once."""
        return tuple(dict.fromkeys(self.corpora if self.corpus is None else (self.corpus,)))

    @property
    def budgets(self) -> Budgets:
        """Its budgets."""
        return Budgets(question=self.question_budget, run=self.run_budget)


ASKED_ID = "asked"
"""The id of a question that is asked alone."""

DEFAULT_SYSTEM = "ircot"
"""The system that answers where none is named."""

OF_MANY = (
    *("dataset", "questions", "map", "official", "limit", "repeat", "serving", "priority"),
    *("run_budget", "until", "plan"),
)
"""The fields of a request that a single question has no use for."""


class AskRequest(RunRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request for the answer to one question, which goes ahead of all runs that aren't asked.

    It is a run of its own, so that all else is as in `RunRequest`; `OF_MANY` stay at their defaults.
    Without a corpus the only one there is searched.
    """

    question: Annotated[str, Meta(min_length=1, max_length=MOST_QUESTION)]
    system: Annotated[
        str,
        Meta(
            extra=_ABOUT["system"]
            | {"meaning": f"The system; `{DEFAULT_SYSTEM}` by default, and `cotrail systems` lists them."}
        ),
    ] = DEFAULT_SYSTEM
    dataset: str = "jsonl"
    questions: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if is_blank(self.question):
            raise ValueError("the question is empty; write it behind `question`")
        for field in fields(AskRequest):
            unused: Any = field.default if field.default_factory is NODEFAULT else field.default_factory()
            if field.name in OF_MANY and getattr(self, field.name) != unused:
                raise ValueError(f"`{field.name}` is for runs of many questions: `cotrail submit`")

    @property
    def asked(self) -> Question:
        return Question(id=ASKED_ID, text=self.question)

    @property
    def budgets(self) -> Budgets:
        """See `RunRequest`; the money of the only question is the run's too, and set aside of the project's."""
        return Budgets(question=self.question_budget, run=Budget(money=self.question_budget.money))


def check_files(request: RunRequest) -> None:
    """Raises InputError where a path is empty, or files are named that only mean something with others."""
    empty = next((field for field in PATH_FIELDS if getattr(request, field) == ""), None)
    if empty and request.asked is None:
        raise InputError(f"`{empty}` is empty; name a file, or leave it out")
    if request.sets and not (request.demonstrations or request.title_demonstrations):
        raise InputError(
            "`sets` says which of the demonstrations are shown, and there are none; name `demonstrations` too"
        )


Request = TypeVar("Request", bound=RunRequest)


def check_keys(values: Mapping[str, Any], where: str = "") -> None:
    """Raises InputError for a key that no request has; it may be what is missing, in another spelling.

    where: the file that has the keys.
    """
    keys = (*RunRequest.__struct_fields__, *ROLES)
    if unknown := sorted(values.keys() - set(keys)):
        message = nearest.unknown("key", unknown[0], keys)
        raise InputError(f"{f'{where}: ' if where else ''}{message}; `cotrail submit --help` has all")


def overruled(values: Mapping[str, Any], by: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of two requests in one, `by` winning; an engine may stand under its role's name in either."""
    one, other = _gathered(values), _gathered(by)
    if "corpus" in other or "corpora" in other:
        one = {key: value for key, value in one.items() if key not in ("corpus", "corpora")}
    if isinstance(one.get("engines"), dict) and isinstance(other.get("engines"), dict):
        other["engines"] = one["engines"] | other["engines"]
    return one | other


def make_request(values: Mapping[str, Any], places: Mapping[str, str] = MappingProxyType({})) -> RunRequest:
    """The request with its types and bounds checked; InputError names the field.

    values: its fields, and engines by their roles. places: where they were given, for errors: the name of a file, or an
        option.
    """
    check_keys(values)
    for field in REQUIRED_FIELDS:
        if values.get(field) is None:
            raise InputError(f"no {field} given; a request names its {', '.join(REQUIRED_FIELDS)}")
    return _made(RunRequest, values, places)


def make_ask_request(values: Mapping[str, Any], places: Mapping[str, str] = MappingProxyType({})) -> AskRequest:
    """The same of a single question."""
    return _made(AskRequest, values, places)


def _made(of: type[Request], values: Mapping[str, Any], places: Mapping[str, str]) -> Request:
    gathered = _gathered(values)
    try:
        return msgspec.convert(gathered, of)
    except msgspec.ValidationError as error:
        message = refusal(error, of, gathered)
        field = message.removeprefix("`").removeprefix("engines.")
        key = next((key for key in places if field.startswith((f"{key}`", f"{key}.", f"{key}["))), "")
        raise InputError(f"{places.get(key, 'this run')}: {message}; correct it") from error


def _gathered(values: Mapping[str, Any]) -> dict[str, Any]:
    """The keys, with the engines that stand under their roles' names among `engines`."""
    engines = {role: values[role] for role in ROLES if values.get(role) is not None}
    rest = {key: value for key, value in values.items() if key not in ROLES}
    if not engines or not isinstance(rest.get("engines", {}), dict):
        return rest
    return rest | {"engines": rest.get("engines", {}) | engines}


def read_run_file(path: Path) -> dict[str, Any]:
    """The keys of a TOML file, its paths made independent of the working directory; InputError where it can't be read.

    The keys aren't checked yet, as a caller's own may overrule them (`make_request`).
    """
    values = read_toml_file(path)
    for key in PATH_FIELDS:
        if isinstance(values.get(key), str) and not is_bundled(key, values[key]):
            values[key] = str(path.parent / values[key])
    return values


def read_toml_file(path: Path) -> dict[str, Any]:
    """The keys and tables of a TOML file; InputError where it can't be read."""
    try:
        return read_toml(path)
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}); check the path") from error
