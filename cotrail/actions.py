"""What a system may ask for, what it gets back, and how both are written down.

A system is a generator that yields actions and is sent their results; see `cotrail.replay` for the driver.
"""

import hashlib
from collections.abc import Generator
from functools import cache
from typing import Literal

import msgspec
from msgspec import Struct

from cotrail.paragraphs import Hit, Paragraph
from cotrail.prompting.prompt import Prompt

Until = Literal["sentence", "line"]
"""Where a generation ends: behind the first whole sentence, or at the line's end."""


Field = Literal["all", "title"]
"""What a search looks at: title and text, or the title alone."""

Scope = Literal["only", "after"]
"""How titles narrow a search: `only` their paragraphs are looked for, or they are picked `after` the search, from its
best `count` (the released code of IRCoT)."""


class Retrieve(Struct, frozen=True, kw_only=True):
    """Find the best `count` paragraphs for a query, of any page or only of the titles given."""

    query: str
    count: int
    titles: tuple[str, ...] = ()
    scope: Scope = "only"
    field: Field = "all"


class Reason(Struct, frozen=True, kw_only=True):
    """Write the next sentence of a chain of thought."""

    prompt: Prompt
    max_tokens: int
    until: Until = "sentence"


class Read(Struct, frozen=True, kw_only=True):
    """Write a question's answer from its paragraphs."""

    prompt: Prompt
    max_tokens: int
    until: Until = "line"


Action = Retrieve | Reason | Read

ACTIONS: dict[str, type[Action]] = {"retrieve": Retrieve, "reason": Reason, "read": Read}
"""Every action by its name in queues, tasks and tables."""


class Together(Struct, frozen=True):
    """Actions that don't need each other; their results come back in this order."""

    actions: tuple[Action, ...]


class Retrieved(Struct, frozen=True, kw_only=True):
    """What a `Retrieve` found, the best first; equal scores are ordered by paragraph id."""

    hits: tuple[Hit, ...]


class Generated(Struct, frozen=True, kw_only=True):
    """What a `Reason` or a `Read` wrote.

    text: what was kept; raw: all that the model wrote.
    demonstrations, paragraphs: how many of the prompt's parts fitted the context; paragraphs from the front.
    first_demonstration: which of the prompt's demonstrations is the first that was kept, from 0.
    prompt_digest: the SHA-256 of the prompt as the model saw it.
    drafted_tokens, accepted_tokens: how many tokens were guessed before the model was asked, and how many of these it
        wrote too (speculative decoding); neither changes what is written.
    """

    text: str
    raw: str
    demonstrations: int
    paragraphs: int
    prompt_digest: str
    prompt_tokens: int
    cached_prompt_tokens: int
    generated_tokens: int
    first_demonstration: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0


Result = Retrieved | Generated


class Failure(Struct, frozen=True, kw_only=True):
    """A failed step, as it is stored: the error's class name and its message."""

    type: str
    message: str


class StepFailed(Exception):  # noqa: N818 - named as systems read it: except StepFailed
    """Thrown into a system in place of a result, live and on replay alike; a system may catch it."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.type}: {failure.message}")
        self.failure = failure


class Answer(Struct, frozen=True, kw_only=True):
    """What a system returns.

    text: the answer, empty where none was found.
    sentences: the chain of thought behind it; paragraphs: all that were collected, in that order.
    """

    text: str
    sentences: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()


System = Generator[Action | Together, Result | tuple[Result, ...], Answer]


class Binding(Struct, frozen=True, kw_only=True):
    """What a run pins beside its system, and which therefore decides a step's result.

    model: the name and digest of the model; profile: the serving profile; corpus: the index's revision.
    """

    model: str
    profile: str
    temperature: float
    seed: int
    corpus: str


def kind(action: Action) -> str:
    """The action's name, as in `ACTIONS`."""
    return type(action).__name__.lower()


def canonical(value: object) -> bytes:
    """One sequence of bytes for equal values: JSON with sorted keys, no spaces, UTF-8."""
    return msgspec.json.encode(value, order="sorted")


def fingerprint(action: Action, binding: Binding) -> str:
    """The SHA-256 over everything that decides the action's result.

    It covers the kind, the query or the rendered prompt, the model, the sampling and the corpus revision; not
    timeouts, addresses, keys and retry counts, which may change under way.
    """
    match action:
        case Retrieve():
            decides = {"query": action.query, "count": action.count, "titles": action.titles, "corpus": binding.corpus}
            decides |= _unusual(action, "scope", "field")
        case Reason() | Read():
            decides = {
                "prompt": action.prompt.digest,
                "until": action.until,
                "max_tokens": action.max_tokens,
                "model": binding.model,
                "profile": binding.profile,
                "temperature": binding.temperature,
                "seed": binding.seed,
            }
            decides |= _unusual(action.prompt, "drop")
    return hashlib.sha256(canonical({"kind": kind(action), **decides})).hexdigest()


def _unusual(value: Struct, *names: str) -> dict[str, object]:
    """Those of the fields that aren't at their defaults: what came later leaves older fingerprints as they are."""
    defaults = _defaults(type(value))
    return {name: getattr(value, name) for name in names if getattr(value, name) != defaults[name]}


@cache
def _defaults(of: type[Struct]) -> dict[str, object]:
    return {field.name: field.default for field in msgspec.structs.fields(of)}
