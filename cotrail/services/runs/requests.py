"""Requests for runs: their fields and bounds, given by options, a TOML file or a client of the API."""

from collections.abc import Mapping
from functools import partial
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
from cotrail.core.ports.encoders import RELEVANCE_RATER
from cotrail.core.ports.language_model import Profile, Serving
from cotrail.core.ports.roles import ROLES
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


def _field(group: str, value: str, meaning: str) -> Meta:
    """What people read about a field; value: what stands for its value, as in `--limit N`."""
    return Meta(extra={"group": group, "value": value, "meaning": meaning})


_what = partial(_field, "What to run")
_how = partial(_field, "How the system works")
_model = partial(_field, ENGINES_GROUP)


def described(field: FieldInfo) -> dict[str, str]:
    """What people read about a field of a request: its `group`, `value` and `meaning`; empty where nothing is said."""
    about = (each for each in getattr(field.type, "__metadata__", ()) if isinstance(each, Meta))
    return next((each.extra for each in about if each.extra), {})


class RunRequest(RunFiles, Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request for a run; a run file has the same keys, and `cotrail submit` an option for each field that has a group.

    retrieval_count, max_sentences, reader, task, chains and variant are short for the system's settings of that name;
    `settings` holds any others, and overrules `rules`. corpus is the only one of the corpora.
    """

    system: Annotated[str, _what("NAME", "The system; `cotrail systems` lists them.")]
    dataset: Annotated[str, _what("NAME", "The dataset of the questions")]
    questions: Annotated[str, _what("PATH", "The file; `-` for standard input.")]
    map: Annotated[
        dict[str, str],
        _what(
            "FIELD=NAME",
            "What fields of your own questions are called in the file, as `question=query answers=gold_answer`; usual "
            "names are recognised.",
        ),
    ] = {}
    official: Annotated[
        str | None,
        _what(
            "PATH",
            "The dataset's own file, where --questions is one that the authors of IRCoT processed and lacks answers "
            "that count (MuSiQue, 2WikiMultihopQA).",
        ),
    ] = None
    corpus: str | None = None
    corpora: Annotated[
        tuple[str, ...],
        _what("CORPUS", "A corpus made by `cotrail index`, the first where there are several. May be repeated."),
    ] = ()
    limit: Annotated[Positive | None, _what("N", "Only the first N questions.")] = None
    repeat: Annotated[
        Times, _what("N", "Ask them N times: as N runs with the seeds S, S + 1 and so on, which are scored together.")
    ] = 1
    reader: Annotated[
        Reader | None,
        _how("FORM", "`direct` (the default), `cot`, or `none`: what IRCoT's own chain states, or no answer."),
    ] = None
    rules: Annotated[
        Rules,
        _how(
            "NAME", "`paper` (the default), or `released`: as the authors' code does where it departs from the paper."
        ),
    ] = "paper"
    demonstrations: Annotated[
        str | None, _how("PATH", "Solved examples that prompts begin with; none without this.")
    ] = None
    title_demonstrations: Annotated[
        str | None, _how("PATH", "Solved examples of naming pages, for questions about a passage (IIRC).")
    ] = None
    sets: Annotated[
        str | None,
        _how(
            "PATH",
            "Which of the demonstrations are shown, in which order: a JSON file of lists of ids, or `released`: the "
            "sets of IRCoT's authors.",
        ),
    ] = None
    set_number: Annotated[Positive | None, _how("N", "Which of the sets, from 1, which is the default.")] = None
    prompt: Annotated[
        str | None,
        _how(
            "PATH",
            "The words of the system's prompt, with {question} where the question stands, or a folder of its prompts; "
            "its own without this. `cotrail systems NAME --words FOLDER` writes these.",
        ),
    ] = None
    retrieval_count: Annotated[RetrievalCount | None, _how("K", "Paragraphs a search (K).")] = None
    retriever: Annotated[
        str | None,
        _how(
            "NAME",
            "How a corpus with embeddings is searched: `bm25`, `dense`, `hybrid`, or weights as `bm25=0.3,dense=0.7`; "
            "its own way without this.",
        ),
    ] = None
    rerank: Annotated[
        str | None, _how("NAME", "A rater that puts what a search finds in its order; `cotrail models` lists them.")
    ] = None
    rerank_depth: Annotated[
        RetrievalCount | None, _how("N", "How many of a search's best are reranked; 100 by default.")
    ] = None
    max_sentences: Annotated[Positive | None, _how("N", "Sentences a chain, at most.")] = None
    task: Annotated[
        Task | None,
        _how(
            "NAME",
            "`commonsense` (yes or no), `temporal` (a text) or `tabular` (true or false), for rethinking and its "
            "baselines; the dataset's own by default.",
        ),
    ] = None
    chains: Annotated[Positive | None, _how("N", "How many chains of thought are sampled.")] = None
    variant: Annotated[
        Variant | None, _how("NAME", "Of rethinking: `basic` (the default), fact `selection`, or fact `generation`.")
    ] = None
    model: Annotated[str | None, _model("NAME", "A name in `cotrail models`, which marks the default.")] = None
    profile: Annotated[
        Profile | None,
        _model(
            "NAME",
            "`fast`, or `deterministic`: the same bytes whatever happens; the latter by default where chains are "
            "sampled.",
        ),
    ] = None
    engines: Annotated[
        dict[str, str], _model("ROLE=NAME", "The engine of any role that the system needs. May be repeated.")
    ] = {}
    temperature: Annotated[Temperature, _model("T", "0 (the default) takes the likeliest.")] = 0.0
    seed: Annotated[Whole, _model("N", "The seed of sampling; 0 by default.")] = 0
    serving: Annotated[
        Serving,
        _model(
            "NAME",
            "`live` (the default), or `batch`: the model's provider is asked in batches, for less money and within a "
            "day each.",
        ),
    ] = "live"
    priority: Annotated[Priority, _what("N", "Questions of runs with a higher number begin first; 0 by default.")] = 0
    question_budget: Annotated[
        Budget,
        _what(
            "LIMIT=N",
            "The most that a question may take: steps, tokens, seconds or money (US dollars), as `tokens=20000`. May "
            "be repeated.",
        ),
    ] = NO_BUDGET
    run_budget: Annotated[
        Budget, _what("LIMIT=N", "The same of all questions together, as `money=5`. May be repeated.")
    ] = NO_BUDGET
    until: Annotated[
        str | None,
        _what(
            "RULE",
            "Stop asking questions, in random order, once a metric is known well enough, as `width(f1) < 0.05`: the "
            "95 % interval of its mean is narrower than that.",
        ),
    ] = None
    plan: Annotated[
        str | None,
        _what(
            "PATH",
            "What is stated of the evaluation before it begins: a TOML file of metrics, the comparison that will be "
            "made, and the hypothesis. Sealed with the run.",
        ),
    ] = None
    name: Annotated[str | None, _what("NAME", "A name for the run, for every RUN argument.")] = None
    tags: Annotated[tuple[str, ...], _what("TAG", "A tag, to filter runs by. May be repeated.")] = ()
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
            retriever=self.retriever or "", reranked=(self.rerank_depth or RERANKED_HITS) if self.rerank else 0
        )

    @property
    def all_engines(self) -> dict[str, str]:
        """Its engines by role, the one that reranks among them."""
        return self.engines | ({RELEVANCE_RATER.name: self.rerank} if self.rerank else {})

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
        str, _what("NAME", f"The system; `{DEFAULT_SYSTEM}` by default, and `cotrail systems` lists them.")
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
        """See `RunRequest`."""
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
