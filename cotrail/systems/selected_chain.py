"""A selected chain: IRCoT's loop, in which the next sentence is selected from what was found instead of written.

The system is cotrail's own, for models too small to write a chain: the sentence is the one that has the most words of
the question. It is near to the condensed retrieval of Baleen (Khattab et al., 2021), without any training.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from cotrail.common.humanize import Positive
from cotrail.core.actions.generate import Read
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.questions import Paragraph, Question, passage_of
from cotrail.core.system import Answer, Part, System
from cotrail.faithfulness.paper import all_sentences
from cotrail.systems.parts.prompting import PromptSettings, shown
from cotrail.systems.parts.reading import ReaderSettings, reader_prompt
from cotrail.systems.parts.rules import Limited, StepBound
from cotrail.systems.parts.searching import SearchSettings, found
from cotrail.systems.parts.steps import last_text
from cotrail.systems.spec import Needs, SystemSpec, always, description


class SelectedChainSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A chain of selected sentences."""

    search: SearchSettings = SearchSettings()
    prompting: PromptSettings = PromptSettings()

    hops: Positive = 2
    """Searches, and so sentences: those before the last lead to another page, whose paragraph the reader sees whole."""

    max_span_words: Positive = 5
    """The most words of an answer, which is a piece of the last paragraph."""

    max_answer_tokens: Positive = 24
    """The most tokens of an answer."""


def selected_chain(question: Question, shots: Shots, settings: SelectedChainSettings) -> System:
    """Search with the question, then with the sentence found that is most like it, and read where that leads."""
    paragraphs = chain = shown(question, ())
    with Limited() as end:
        query = question.text
        for _ in range(settings.hops):
            new = tuple(each for each in (yield from found(query, settings.search)) if each not in paragraphs)
            best = select(question.text, candidates(question.text, chain, named(new, question.text, query)))
            if best is None:
                break
            paragraphs += new
            chain += (best,)
            query = best.text
    sentences = tuple(each.text for each in chain)
    if not chain:
        return Answer(text="", limit=end.limit)
    page = next(each for each in reversed(paragraphs) if each.title == chain[-1].title)
    answer = yield from read(question, (*chain[:-1], page), shots, settings)
    return Answer(text=answer, sentences=sentences, paragraphs=paragraphs, limit=end.limit)


def named(paragraphs: tuple[Paragraph, ...], question: str, sentence: str) -> tuple[Paragraph, ...]:
    """The paragraphs whose titles the sentence has and the question hasn't, or all where there are none of these."""
    led_to = (each for each in paragraphs if each.title.lower() in sentence.lower())
    return tuple(each for each in led_to if each.title.lower() not in question.lower()) or paragraphs


def candidates(question: str, chain: tuple[Paragraph, ...], paragraphs: tuple[Paragraph, ...]) -> tuple[Paragraph, ...]:
    """The sentences of these paragraphs; of those that begin a chain, the ones that bring a new name, if any does."""
    passages = tuple(
        dict.fromkeys(passage_of(text, each.title) for each in paragraphs for text in all_sentences(each.text))
    )
    leading = passages if chain else tuple(each for each in passages if brings_name(each, question))
    return leading or passages


def brings_name(sentence: Paragraph, question: str) -> bool:
    """Return whether the sentence has a capitalised word that isn't in the question nor only begins the sentence."""
    names = _NAME.finditer(sentence.text)
    return any(each[0].lower() not in question.lower() for each in names if each.start() or each[0] in sentence.title)


def select(question: str, passages: tuple[Paragraph, ...]) -> Paragraph | None:
    """The passage that has the most words of the question, the first of equals; None where there are none."""
    asked = beginnings(question)
    return max(passages, key=lambda each: len(asked & beginnings(f"{each.title} {each.text}")), default=None)


def beginnings(text: str) -> frozenset[str]:
    """The first letters of a text's words, so that "designed" is like "designer"."""
    words = (each[0].lower() for each in _SINGLE.finditer(text))
    return frozenset(each[:ALIKE] for each in words if each not in SMALL)


def read(question: Question, shown: tuple[Paragraph, ...], shots: Shots, settings: SelectedChainSettings) -> Part[str]:
    """The piece of the last paragraph that the model reads there as the answer, and that nothing else shown has."""
    known = " ".join((question.text, *(each.text for each in shown[:-1]), shown[-1].title))
    pieces = spans(shown[-1].text, known, settings.max_span_words, numbers=not _NAMELY.match(question.text))
    prompt = reader_prompt(question, shown, shots, ReaderSettings(), settings.prompting, layout="qa")
    # The line break lets the model end an answer that is the beginning of a longer piece.
    choices = tuple({each.casefold(): f"{each}\n" for each in pieces}.values())
    return (yield from last_text(Read(prompt=prompt, max_tokens=settings.max_answer_tokens, choices=choices))).strip()


def spans(text: str, known: str, most: int, *, numbers: bool) -> Iterator[str]:
    """Yield the pieces of a text of so many words, a name being one, without words that are known or, maybe, numbers.

    They cross no punctuation.
    """
    words = tuple(_WORD.finditer(text))
    old = {each[0].lower() for each in _SINGLE.finditer(known)} - SMALL
    for start, first in enumerate(words):
        for end, last in enumerate(words[start : start + most], start):
            if (end > start and text[words[end - 1].end() : last.start()] != " ") or (
                last[0][0].isdigit() and not numbers
            ):
                break
            if old.intersection(each[0].lower() for each in _SINGLE.finditer(last[0])):
                break
            if last[0].lower() not in SMALL and first[0].lower() not in SMALL - {"the", "a"}:
                yield text[first.start() : last.end()]


ALIKE = 5
"""Letters by which two words are alike."""

SMALL = frozenset(
    "the a an of in at on by for from to and or with was were is are as it its which who what where when that this "  # noqa: SIM905
    "he she his her their they be has had into".split()
)
"""Words that neither end a piece nor make two texts alike."""

_NAME = re.compile(r"\b[A-Z][\w'-]+")
_SINGLE = re.compile(r"\w+")
_WORD = re.compile(r"[A-Z][\w'-]*(?: (?:of )?[A-Z][\w'-]*)*|\d+(?:[.,]\d+)*|\w[\w'-]*")
_NAMELY = re.compile(
    r"(?:\w{1,20} )?(?:who|whom|whose|where|which(?! (?:year|date|day|month|century)))\b", re.IGNORECASE
)
"""The beginning of a question that no number answers."""


def step_bounds(question: Question, settings: SelectedChainSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    words = (settings.hops + 1) * settings.search.paragraph_words
    output, form = settings.max_answer_tokens, AnswerForm.DIRECT
    return (
        StepBound(kind="retrieve", times=settings.hops),
        StepBound(kind="read", times=1, output=output, words=words, form=form),
    )


SPEC = SystemSpec(
    **description("selected-chain"),
    settings=SelectedChainSettings,
    open=selected_chain,
    # The model is held to the words of what was found.
    needs=always(Needs(forms=frozenset({AnswerForm.DIRECT}), corpus=True, capabilities=frozenset({"structure"}))),
    step_bounds=step_bounds,
)
