"""A kind of action: one record of everything that the rest of the code asks about it.

A new kind is a file next to this one, with a class derived from `Action`, a class derived from `Result` unless there is
one of that shape, and a record; and a line in `registry`.
"""

from collections.abc import Callable
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct, structs

from cotrail.core.binding import MODEL, Binding
from cotrail.core.demonstrations import Stored
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.retriever import Corpus, Knowledge, Source
from cotrail.core.ports.role import BatchedRole, RequestT, ResultT
from cotrail.core.questions import Paragraph
from cotrail.core.results import Json, Result, Retrieved
from cotrail.core.system import Action
from cotrail.core.views import View

Role = Literal["generation", "retrieval", "evidence"]
"""Workers that carry steps out: those with a language model, those with the corpora and knowledge sources, and those
with the models that compare and read texts."""


class UnreadAction(Action, frozen=True, kw_only=True):
    """An action that this version can't read, since it doesn't know its kind or its form: the request alone."""

    request: Json


class UnreadResult(Result, frozen=True, kw_only=True):
    """The result of an action that this version can't read, as it is recorded."""

    result: Any

    def recorded(self) -> Any:
        return self.result


class Splitter(Protocol):
    """Cuts a text into sentences."""

    def first_sentence(self, text: str) -> str:
        """The first sentence, stripped; empty where there is none."""


class Engines(Protocol):
    """Everything that a worker may carry out a step with: the engines of the step's run.

    Each is opened when it is first asked for. Asking raises BlockedError where this worker's isn't what the run was
    submitted with, UnknownNameError where it has none of that name, and UnavailableError where a server doesn't answer.
    """

    @property
    def binding(self) -> Binding:
        """Everything that the run pins."""

    @property
    def cancellation(self) -> Cancellation:
        """Cuts off a generation whose step was lost or cancelled."""

    def language_model(self, role: str = MODEL) -> Any:
        """The language model that the run has for a role: its own, or one of those that its system needs in addition.

        It is a `LanguageModel`, whose port knows prompts and so stands above kinds of action that have none.
        """

    def splitter(self, name: str) -> Splitter:
        """A pipeline that splits sentences, as NAME@VERSION."""

    def retriever(self, corpus: str = "") -> Corpus:
        """The run's corpus of that name, or its first one."""

    def knowledge(self, source: Source) -> Knowledge:
        """A knowledge source."""

    def ask(self, role: BatchedRole[Any, RequestT, ResultT], request: RequestT) -> ResultT:
        """The result of the engine that the run has for a role, together with what other steps ask of it meanwhile."""


class EngineNames(Protocol):
    """Names of a run's engines, as messages show them; empty or None where the run has no such engine."""

    @property
    def binding(self) -> Binding:
        """Everything that the run pins, its corpora by name."""

    def engine_name(self, role: str) -> str:
        """The engine of a role."""


A = TypeVar("A", bound=Action)
R = TypeVar("R", bound=Result)


class ActionKind(Struct, Generic[A, R], frozen=True, kw_only=True):
    """Everything about a kind of action; what has a default may be left out.

    name: in queues, tasks, tables and traces; action, result: its classes.
    role: which workers carry it out; deadline: seconds that an execution may take, the wait for its engine included:
        far more than any needs.
    carry_out: computes the result. It may raise any of `cotrail.errors`.
    decides: everything that decides the result, as JSON, from the action and from what its run pins. Of this the
        fingerprint is made, so it can never change for a kind that has been recorded.
    request: writes an action down as JSON, in which `paragraphs` and `texts` are lists of digests where it refers to
        some, and `demonstrations` one digest. read_back: the reverse; see `read`.
    paragraphs: those that an action refers to, which are stored apart, and its long texts as paragraphs.
    query: for a kind whose result is `Retrieved`: which field of the action and of the request is searched for.
    pinned: under which name the run pins the engine that carries the kind out: a column of `runs`, or a name in
        `Binding.pins`; a function where the request decides it.
    need: that engine in words, for reports of outages; named_need: the same by its name in a run.
    view: what there is to show of an action and its result; see `view_of` for a kind without one.
    fields: what the JSON of a trace holds of them, of a kind without prompts that finds no paragraphs; by default
        request and result as they are recorded.
    """

    name: str
    action: type[A]
    result: type[R]
    role: Role
    deadline: float = 3600
    carry_out: Callable[[A, Engines], R]
    decides: Callable[[A, Binding], Json]
    request: Callable[[A], Json] = msgspec.to_builtins
    read_back: Callable[[Json, Stored], A] | None = None
    paragraphs: Callable[[A], tuple[Paragraph, ...]] = lambda _: ()
    query: str | None = None
    pinned: str | Callable[[Json], str] | None = None
    need: str = ""
    named_need: Callable[[A, EngineNames], str] | None = None
    view: Callable[[A, R | None], View] | None = None
    fields: Callable[[A, R | None], Json] | None = None

    @property
    def finds_paragraphs(self) -> bool:
        """Return whether its results are paragraphs that were found."""
        return issubclass(self.result, Retrieved)

    def read(self, request: Json, stored: Stored) -> A:
        """The action that `request` wrote down.

        Raises ValueError where the request isn't whole or says more than this version knows, and what `stored` raises.
        """
        if self.read_back is None:
            return msgspec.convert(request, self.action)
        return self.read_back(request, stored)

    def needed(self, action: A, names: EngineNames) -> str:
        """The engine that an action needs and that may be away, in words."""
        return self.named_need(action, names) if self.named_need else self.needed_by_all

    @property
    def needed_by_all(self) -> str:
        """The engine that all actions of the kind need, in words."""
        return self.need or engine_of(self.name)


class Referring(Generic[A]):
    """How an action is stored whose paragraphs are in one of its fields, one paragraph or a tuple of them: by digests.

    type_: the action's class; field: the field's name, `paragraphs` in requests.
    """

    def __init__(self, type_: type[A], field: str = "paragraphs") -> None:
        self._type = type_
        self._field = field
        self._others = {each.name: each.type for each in structs.fields(type_) if each.name != field}
        written = [*self._others.items(), ("paragraphs", tuple[str, ...])]
        self._written = msgspec.defstruct(f"_Written{type_.__name__}", written, forbid_unknown_fields=True)

    def paragraphs(self, action: A) -> tuple[Paragraph, ...]:
        value = getattr(action, self._field)
        return value if isinstance(value, tuple) else (value,)

    def request(self, action: A) -> Json:
        fields = {name: getattr(action, name) for name in self._others}
        return {**fields, "paragraphs": [each.digest for each in self.paragraphs(action)]}

    def read_back(self, request: Json, stored: Stored) -> A:
        """The action that a request wrote down; see `ActionKind`."""
        record = structs.asdict(msgspec.convert(request, self._written))
        paragraphs: Any = stored.referred(record.pop("paragraphs"))
        if self._field != "paragraphs":
            (paragraphs,) = paragraphs
        return self._type(**record, **{self._field: paragraphs})


def engine_of(kind: str) -> str:
    """The engine of a kind whose record doesn't say more, in words."""
    return f"the engine of {kind} steps"


def digests_in(request: object) -> list[str]:
    """Digests of the paragraphs and long texts that a stored request refers to, as far as they can be read."""
    return [*_digests(request, "paragraphs"), *_digests(request, "texts")]


def _digests(request: object, name: str) -> list[str]:
    referred = request.get(name) if isinstance(request, dict) else None
    return [digest for digest in referred if isinstance(digest, str)] if isinstance(referred, list | tuple) else []
