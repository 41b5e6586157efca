"""Prompt settings, the passages and instructions in the prompts of all systems, and IRCoT's few-shot prompts (3.1)."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, TypeVar, cast

import msgspec
from msgspec import Struct

from cotrail.common.text_files import split
from cotrail.core.demonstrations import WORDS, AnswerForm, Demonstrations, Drop, Layout, Shots
from cotrail.core.prompts import Asked, Demonstrated, Piece, Prompt, Shown, Turn, Written
from cotrail.core.questions import GoldParagraph, Paragraph, Question, passage_of

PINNED_LAST = 2
"""What the other paragraphs yield where a pinned passage stands behind them: it stays longest all the same."""


def few_shot_prompt(
    *,
    demonstrations: Demonstrations,
    paragraphs: tuple[Paragraph, ...] = (),
    question: str,
    sentences: tuple[str, ...] = (),
    max_paragraph_words: int = 350,
    drop: Drop = "last",
    pinned_last: bool = False,
    layout: Layout = "ircot",
) -> Prompt:
    """A prompt of plain text, which the model continues behind the sentences.

    paragraphs: in the order collected, so that the prompts of a question share a long prefix.
    sentences: the chain of thought so far.
    max_paragraph_words: each paragraph is cut to this many space-separated words.
    drop: which demonstrations are left out where not all fit.
    pinned_last: whether the first of the paragraphs, a pinned passage, stands behind the others in the text. Where not
        all fit it stays the longest all the same.
    layout: how all of it is laid out as a text.
    """
    words = WORDS[layout]
    moved = int(pinned_last)
    shown: list[Piece] = [
        Shown(
            paragraph=paragraph,
            form=words.paragraph(paragraph.title),
            words=max_paragraph_words,
            yields=PINNED_LAST if pinned_last and place else 1,
        )
        for place, paragraph in enumerate(paragraphs)
    ]
    facts, question_piece = [*shown[moved:], *shown[:moved]], Asked(question, words.asked)
    pieces = [question_piece, *facts] if layout == "unifiedqa" else [*facts, question_piece, *_chain(sentences)]
    first = Demonstrated(demonstrations=demonstrations, layout=layout, drop=drop)
    return Prompt(turns=(Turn(role="", pieces=(first, *pieces), lower=layout == "unifiedqa"),))


def _chain(sentences: tuple[str, ...]) -> list[Written]:
    """The sentences, each with the blank before it; what the model continues never ends in white space."""
    texts = [f" {sentence}" for sentence in sentences]
    for place in reversed(range(len(texts))):
        texts[place] = texts[place].rstrip()
        if texts[place]:
            break
    return [Written(text) for text in texts]


# The words of a system's prompts: files of the package, which a run may replace by its own.

Filling = str | Piece | Iterable[str | Piece]
"""What is put in a place: a text or a piece, or several."""


@cache
def own_words(system: str) -> Mapping[str, str]:
    """The words of a system's prompts by name: the files `NAME.txt` of its folder in `cotrail/systems/words`.

    Recorded runs replay by the words of the version that they pin: who changes these files counts the version up.
    """
    folder = files("cotrail.systems") / "words" / system
    texts = {each.name: each.read_text("utf-8") for each in folder.iterdir() if each.name.endswith(".txt")}
    return MappingProxyType({name.removesuffix(".txt"): texts[name].strip("\n") for name in sorted(texts)})


def chosen_words(shots: Shots, own: Mapping[str, str], name: str) -> str:
    """The words of the prompt of that name: those that the run brings, or else the system's own."""
    brought = {each.id: each.question for each in shots[AnswerForm.PROMPT].items} if AnswerForm.PROMPT in shots else {}
    return brought.get(name, own[name])


def filled(words: str, **values: Filling) -> tuple[str | Piece, ...]:
    """The words with these values in the places of their names; places without a value stay as they stand.

    What a value holds is never looked at, so that a question may have brackets of its own.
    """
    return tuple(piece for part in split(words) for piece in _filled(part, values) if piece != "")


def _filled(part: str, values: Mapping[str, Filling]) -> Iterable[str | Piece]:
    name = part[1:-1]
    if part != f"{{{name}}}" or name not in values:
        return (part,)
    value = values[name]
    return (value,) if isinstance(value, str | Piece) else value


def worded(shots: Shots, own: Mapping[str, str], name: str, **values: Filling) -> tuple[str | Piece, ...]:
    """The pieces of the prompt of that name; see `chosen_words` and `filled`."""
    return filled(chosen_words(shots, own, name), **values)


SettingsT = TypeVar("SettingsT", bound=Struct)


def with_defaults(settings: type[SettingsT], **defaults: Any) -> type[SettingsT]:
    """The settings with these defaults; a default that is settings itself brings its own type, and so its defaults."""
    types = {field.name: field.type for field in msgspec.structs.fields(settings)}
    fields = [
        (name, type(value) if isinstance(value, Struct) else types[name], value) for name, value in defaults.items()
    ]
    made = msgspec.defstruct(
        settings.__name__, fields, bases=(settings,), frozen=True, kw_only=True, forbid_unknown_fields=True
    )
    return cast("type[SettingsT]", made)


# Fields of a request that are short for settings of its system, and where systems have these.

SHORT: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "reader": (("reading", "reader"),),
    "retrieval_count": (("retrieval", "retrieval_count"), ("retrieval_count",), ("search", "count")),
    "max_sentences": (("max_sentences",),),
    "task": (("task",),),
    "chains": (("chains",),),
    "variant": (("variant",),),
}
"""The fields, each with the paths where systems have it; the first counts."""


def short_path(field: str, settings: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Where a system with these settings has what the field is short for; None where it has no such setting."""
    return next((path for path in SHORT[field] if _has(settings, path)), None)


def _has(tree: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    head, *rest = path
    return head in tree and (not rest or _has(tree[head], tuple(rest)))


class PromptSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Composition of prompts."""

    drop: Drop = "last"
    """Which demonstrations are left out where not all fit: the `last` ones, the `first` ones, or as in the
    `released` code."""

    pinned: Literal["top", "bottom"] = "top"
    """Whether the passage that a question pins is at the `top` of its paragraphs or at the `bottom`."""


def shown(question: Question, collected: tuple[Paragraph, ...]) -> tuple[Paragraph, ...]:
    """The paragraphs of a prompt: the passage that the question pins, then those collected."""
    pinned = pinned_paragraph(question)
    return collected if pinned is None or pinned in collected else (pinned, *collected)


def pinned_is_last(question: Question, prompting: PromptSettings) -> bool:
    """Return whether the first of the paragraphs is a pinned passage that prompts show after the others."""
    return question.pinned is not None and prompting.pinned == "bottom"


def pinned_paragraph(question: Question) -> Paragraph | None:
    """The passage that the question pins, as a paragraph."""
    return None if question.pinned is None else brought(question.pinned)


def brought(passage: GoldParagraph) -> Paragraph:
    """A passage that a question brings along, as a paragraph."""
    return passage_of(passage.text, passage.title)


def instructed(question: str, instruction: str) -> str:
    """A question with the instruction that the demonstrations' questions have, on lines before it."""
    return f"{instruction}\n{question}" if instruction else question
