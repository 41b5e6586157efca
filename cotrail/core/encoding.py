"""Actions and results as they are stored: paragraphs and demonstrations stand there by digest."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.storable_text import storable
from cotrail.core.actions.embed import Embed
from cotrail.core.actions.entail import Entail
from cotrail.core.actions.kind import Action
from cotrail.core.actions.lookup import Lookup
from cotrail.core.actions.read import Read
from cotrail.core.actions.reason import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.digests import digest_of_hits
from cotrail.core.generation import RULES, Until
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompt_layouts import Layout
from cotrail.core.prompts import Demonstrations, Drop, Prompt
from cotrail.core.results import Embedded, Entailed, Failure, Generated, Result, Retrieved

Json = dict[str, Any]


def request_of(action: Action) -> Json:
    """An action as JSON; paragraphs and demonstrations as digests."""
    match action:
        case Retrieve() | Lookup():
            return msgspec.structs.asdict(action)
        case Embed():
            return {"sentences": action.sentences, "paragraphs": digests_of(action)}
        case Entail():
            return {"hypothesis": action.hypothesis, "paragraphs": digests_of(action)}
        case Reason() | Read():
            prompt = action.prompt
            return {
                "demonstrations": prompt.demonstrations.digest,
                "paragraphs": digests_of(action),
                "question": prompt.question,
                "sentences": prompt.sentences,
                "max_paragraph_words": prompt.max_paragraph_words,
                "drop": prompt.drop,
                "max_tokens": action.max_tokens,
                "until": action.until,
                **_unusual(prompt, _USUAL_PROMPT),
                **_unusual(action, _USUAL),
            }
        case _:
            raise TypeError(f"{action!r} is of no known kind")


def paragraphs_of(action: Action) -> tuple[Paragraph, ...]:
    """The paragraphs that an action refers to."""
    match action:
        case Retrieve() | Lookup():
            return ()
        case Embed():
            return action.paragraphs
        case Entail():
            return (action.premise,)
        case Reason() | Read():
            return action.prompt.paragraphs
        case _:
            raise TypeError(f"{action!r} is of no known kind")


def digests_of(action: Action) -> list[str]:
    """The digests of the paragraphs that an action refers to."""
    return [paragraph.digest for paragraph in paragraphs_of(action)]


def digests_in(request: Json) -> list[str]:
    """The digests of the paragraphs that a stored action refers to."""
    return list(request.get("paragraphs", ()))


def action_of(
    name: str,
    request: Json,
    paragraphs: Mapping[str, Paragraph],
    demonstrations: Callable[[str], Demonstrations],
) -> Action:
    """The action that `request_of` wrote down.

    Raises ValueError where the request isn't whole or says more than this version knows, KeyError where a paragraph is
    missing, and what `demonstrations` raises.
    """
    read = msgspec.convert(request, _FORMS[name])
    match read:
        case Retrieve() | Lookup():
            return read
        case _Embedding():
            return Embed(sentences=read.sentences, paragraphs=_referred(read, paragraphs))
        case _Entailment():
            (premise,) = _referred(read, paragraphs)
            return Entail(premise=premise, hypothesis=read.hypothesis)
    prompt = Prompt(
        demonstrations=demonstrations(read.demonstrations),
        paragraphs=_referred(read, paragraphs),
        question=read.question,
        sentences=read.sentences,
        max_paragraph_words=read.max_paragraph_words,
        drop=read.drop,
        pinned_last=read.pinned_last,
        layout=read.layout,
    )
    if isinstance(read, _Reasoning):
        return Reason(
            prompt=prompt,
            max_tokens=read.max_tokens,
            until=read.until,
            splitter=read.splitter,
            sample=read.sample,
            temperature=read.temperature,
        )
    return Read(prompt=prompt, max_tokens=read.max_tokens, until=read.until, temperature=read.temperature)


class _Referring(Struct, forbid_unknown_fields=True):
    """A stored action that refers to paragraphs by digest."""

    paragraphs: tuple[str, ...]


class _Embedding(_Referring):
    sentences: tuple[str, ...]


class _Entailment(_Referring):
    hypothesis: str


class _Prompting(_Referring, kw_only=True):
    demonstrations: str
    question: str
    sentences: tuple[str, ...]
    max_paragraph_words: int
    drop: Drop
    pinned_last: bool = False
    max_tokens: int
    until: Until
    layout: Layout = "ircot"
    temperature: float | None = None


class _Reasoning(_Prompting, kw_only=True):
    splitter: str = RULES
    sample: int | None = None


_FORMS: dict[str, type[Retrieve | Lookup | _Embedding | _Entailment | _Prompting]] = {
    "retrieve": Retrieve,
    "lookup": Lookup,
    "embed": _Embedding,
    "entail": _Entailment,
    "reason": _Reasoning,
    "read": _Prompting,
}
"""How actions are stored, by their names."""


def _referred(read: _Referring, paragraphs: Mapping[str, Paragraph]) -> tuple[Paragraph, ...]:
    return tuple(paragraphs[digest] for digest in read.paragraphs)


_USUAL: Json = {"splitter": RULES, "sample": None, "temperature": None}
_USUAL_PROMPT: Json = {"pinned_last": False, "layout": "ircot"}


def _unusual(value: Struct, usual: Json) -> Json:
    """What of an action or a prompt is stored only where it isn't as usual."""
    given = {field: getattr(value, field, other) for field, other in usual.items()}
    return {field: value for field, value in given.items() if value != usual[field]}


def result_of(result: Result) -> Json:
    """A result as JSON; what a search found is stored as rows of its own, and here as their digest."""
    match result:
        case Retrieved():
            return {"hits": len(result.hits), "digest": digest_of_hits(result.hits)}
        case Generated() | Embedded() | Entailed():
            return msgspec.to_builtins(result)  # type: ignore[no-any-return]
        case _:
            raise TypeError(f"{result!r} is of no known kind")


MOST_SAID = 10_000
"""How many characters of an error's message are kept: servers answer with whole pages."""


def failure_of(error: BaseException) -> Failure:
    """An error as it is stored."""
    said = str(error)
    shown = said if len(said) <= MOST_SAID else f"{said[:MOST_SAID]}... ({len(said):,} characters)"
    return Failure(type=type(error).__name__, message=storable(shown))
