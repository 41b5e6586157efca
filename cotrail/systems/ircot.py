"""IRCoT: interleaving retrieval with chain-of-thought reasoning (Trivedi et al., ACL 2023, section 3).

Its baselines (section 4.1) are OneR: one-step retrieval, then the reader; and NoR: the reader without any retrieval.
"""

import re
from typing import Annotated, Any

from msgspec import Meta, Struct

from cotrail.common.humanize import Positive
from cotrail.core.actions.generate import Reason
from cotrail.core.answer_extraction import stated_answer
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.generation import RULES
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import Answer, System
from cotrail.systems.parts.prompting import (
    PromptSettings,
    few_shot_prompt,
    instructed,
    pinned_is_last,
    pinned_paragraph,
    shown,
)
from cotrail.systems.parts.reading import ReaderSettings, read_answer
from cotrail.systems.parts.retrieval import (
    PageSettings,
    RetrievalSettings,
    collect,
    find_pages,
    most_pages,
    query_of,
    search,
    shown_to_reader,
)
from cotrail.systems.parts.rules import Limited, StepBound, released_reading, released_retrieval, released_tokens
from cotrail.systems.parts.steps import text_of
from cotrail.systems.spec import Needs, SystemSpec, description


class NoRetrievalSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """NoR: the reader alone."""

    reading: ReaderSettings = ReaderSettings()
    prompting: PromptSettings = PromptSettings()


class OneStepSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """OneR: one search with the question."""

    retrieval: RetrievalSettings = RetrievalSettings(retrieval_count=15)
    reading: ReaderSettings = ReaderSettings()
    pages: PageSettings = PageSettings()
    prompting: PromptSettings = PromptSettings()


def no_retrieval(question: Question, shots: Shots, settings: NoRetrievalSettings) -> System:
    """Ask the model at once, which answers by what it knows."""
    answer = yield from read_answer(question, shown(question, ()), shots, settings.reading, settings.prompting)
    return Answer(text=answer)


def one_step(question: Question, shots: Shots, settings: OneStepSettings) -> System:
    """Retrieve with the question alone, then read."""
    retrieval = settings.retrieval
    # The pinned passage takes no place among those collected: the reader is shown it in addition.
    paragraphs: tuple[Paragraph, ...] = ()
    with Limited():
        most_words = retrieval.max_paragraph_words
        titles = yield from find_pages(question, shots, settings.pages, settings.prompting, most_words)
        if titles is not None:
            hits = yield search(query_of(question.text, retrieval), retrieval, titles, settings.pages.scope)
            paragraphs = collect((), hits, retrieval, pinned_paragraph(question))
    if settings.reading.reader == "none":
        return Answer(text="", paragraphs=paragraphs)
    read_from = shown_to_reader(question, paragraphs, retrieval, settings.prompting)
    answer = yield from read_answer(
        question, read_from, shots, settings.reading, settings.prompting, retrieval.prompt_paragraph_words
    )
    return Answer(text=answer, paragraphs=paragraphs)


def one_step_bounds(question: Question, settings: OneStepSettings) -> tuple[StepBound, ...]:
    """See `SystemSpec`."""
    return (
        *most_pages(question, settings.pages, settings.retrieval.max_paragraph_words),
        StepBound(kind="retrieve", times=1),
        *settings.reading.step_bounds(settings.retrieval.most_words),
    )


Splitter = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(@[A-Za-z0-9.+!-]+)?$",
        max_length=200,
        description="`rules`, or the name of a spaCy pipeline, with or without its version",
        examples=["en_core_web_sm", "en_core_web_sm@3.8.0"],
    ),
]


class IRCoTSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """IRCoT."""

    retrieval: RetrievalSettings = RetrievalSettings()
    reading: ReaderSettings = ReaderSettings()
    pages: PageSettings = PageSettings()
    prompting: PromptSettings = PromptSettings()
    max_sentences: Positive = 8
    """Sentences a chain, at most (8 in the paper; 10 in the released code)."""

    max_sentence_tokens: Positive = 200
    """The most tokens of a sentence."""

    splitter: Splitter = RULES
    """What tells where a sentence ends: cotrail's own `rules`, or an installed pipeline of spaCy, as the released code
    has it with `en_core_web_sm`; a run pins its version, as in `en_core_web_sm@3.8.0`."""

    reasoning_openings: tuple[str, ...] = ("thus ", "thus,", "so ", "so,", "that is,", "therefore", "hence")
    """The beginnings of sentences that only conclude, which make no query."""


def ircot(question: Question, shots: Shots, settings: IRCoTSettings) -> System:
    """Retrieve with the question, then reason and retrieve in turn until a sentence states the answer."""
    retrieval = settings.retrieval
    # By the released code an empty statement ("So the answer is: .") ends the chain too.
    empty = settings.reading.answers == "released"
    pinned = pinned_paragraph(question)
    # The pinned passage counts as collected: it takes one of the `max_paragraphs` places.
    paragraphs = shown(question, ())
    sentences: tuple[str, ...] = ()
    with Limited() as end:
        most_words = retrieval.max_paragraph_words
        titles = yield from find_pages(question, shots, settings.pages, settings.prompting, most_words)
        query = query_of(question.text, retrieval)
        while True:
            if titles is not None:
                hits = yield search(query, retrieval, titles, settings.pages.scope)
                paragraphs = collect(paragraphs, hits, retrieval, pinned)
            sentence = yield from text_of(next_sentence(question, paragraphs, sentences, shots, settings))
            if not sentence:
                # The model has nothing to add; the reader answers from what was collected.
                break
            sentences += (sentence,)
            if stated_answer(sentence, empty=empty) is not None:
                break
            if len(sentences) >= settings.max_sentences:
                end.limit = "sentences"
                break
            query = next_query(question.text, sentences, settings)
    if settings.reading.reader == "none":
        answer = chain_answer(sentences, empty=empty)
        return Answer(text=answer, sentences=sentences, paragraphs=paragraphs, limit=end.limit)
    read_from = shown_to_reader(question, paragraphs, retrieval, settings.prompting)
    answer = yield from read_answer(
        question, read_from, shots, settings.reading, settings.prompting, retrieval.prompt_paragraph_words
    )
    return Answer(text=answer, sentences=sentences, paragraphs=paragraphs, limit=end.limit)


def next_sentence(
    question: Question,
    paragraphs: tuple[Paragraph, ...],
    sentences: tuple[str, ...],
    shots: Shots,
    settings: IRCoTSettings,
) -> Reason:
    """The reason step: the next sentence of the chain, given the paragraphs and the sentences so far."""
    demonstrations = shots[AnswerForm.COT]
    prompt = few_shot_prompt(
        demonstrations=demonstrations,
        paragraphs=paragraphs,
        question=instructed(question.text, demonstrations.instruction),
        sentences=sentences,
        max_paragraph_words=settings.retrieval.prompt_paragraph_words,
        drop=settings.prompting.drop,
        pinned_last=pinned_is_last(question, settings.prompting),
    )
    return Reason(prompt=prompt, max_tokens=settings.max_sentence_tokens, splitter=settings.splitter)


def next_query(question: str, sentences: tuple[str, ...], settings: IRCoTSettings) -> str:
    """The retrieve step's query: the last sentence that states something, or the question if none does."""
    # A conclusion names nothing new to search for, so that the last statement before it is searched for again.
    stating = (s for s in reversed(sentences) if not is_reasoning(s, settings.reasoning_openings))
    return query_of(next(stating, question), settings.retrieval)


_ARITHMETIC = re.compile(r"\d [+-] \d[\d,]*+(?:\.\d++)?(?<=\d) = \d")
r"""A sum or a difference. It is found where the authors' `(N) [+-] (N) = (N)` is, N being `\d[\d,]*\.?\d+|\d+`; theirs
takes time cubic in a run of digits."""


def is_reasoning(sentence: str, openings: tuple[str, ...]) -> bool:
    """Return whether a sentence only concludes: it opens like a conclusion, or holds a sum or a difference."""
    return sentence.lower().startswith(openings) or _ARITHMETIC.search(sentence) is not None


def chain_answer(sentences: tuple[str, ...], *, empty: bool) -> str:
    """The answer that the chain itself states, or the whole chain if it states none (appendix F)."""
    chain = " ".join(sentences)
    stated = stated_answer(chain, empty=empty)
    return chain if stated is None else stated


def step_bounds(question: Question, settings: IRCoTSettings) -> tuple[StepBound, ...]:
    """See `SystemSpec`: a search before each sentence."""
    sentences, words = settings.max_sentences, settings.retrieval.most_words
    chain = StepBound(
        kind="reason",
        times=sentences,
        output=settings.max_sentence_tokens,
        words=words + (sentences - 1) * settings.max_sentence_tokens,
        form=AnswerForm.COT,
    )
    searches = StepBound(kind="retrieve", times=sentences)
    pages = most_pages(question, settings.pages, settings.retrieval.max_paragraph_words)
    return (*pages, searches, chain, *settings.reading.step_bounds(words))


def released_search(*, instructed: bool) -> dict[str, Any]:
    """See `Released`: what a system that searches and reads takes."""
    return released_retrieval(instructed=instructed) | released_reading(instructed=instructed)


def released(*, instructed: bool) -> dict[str, Any]:
    """See `Released`."""
    lengths = {"max_sentences": 10, "max_sentence_tokens": released_tokens(instructed=instructed)}
    return lengths | released_search(instructed=instructed)


SPECS = (
    SystemSpec(
        **description("no-retrieval"),
        settings=NoRetrievalSettings,
        open=no_retrieval,
        needs=lambda settings: Needs(forms=settings.reading.forms),
        released=released_reading,
        step_bounds=lambda _, settings: settings.reading.step_bounds(),
    ),
    SystemSpec(
        **description("one-step"),
        settings=OneStepSettings,
        open=one_step,
        needs=lambda settings: Needs(forms=settings.reading.forms, corpus=True),
        released=released_search,
        readerless=True,
        counts="one-step",
        step_bounds=one_step_bounds,
    ),
    SystemSpec(
        **description("ircot"),
        settings=IRCoTSettings,
        open=ircot,
        needs=lambda settings: Needs(forms=settings.reading.forms | {AnswerForm.COT}, corpus=True),
        released=released,
        readerless=True,
        counts="interleaved",
        states_answer=True,
        step_bounds=step_bounds,
    ),
)
