"""OneR: one-step retrieval, then the reader; NoR: the reader without any retrieval (IRCoT, section 4.1)."""

from typing import Any

from msgspec import Struct

from cotrail.core.demonstrations import Shots
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import Answer, System
from cotrail.systems.parts.prompting import PromptSettings, pinned_paragraph, shown
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
from cotrail.systems.parts.rules import Limited, StepBound, released_reading, released_retrieval
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


def run_needs(settings: OneStepSettings) -> Needs:
    """A reader and a corpus."""
    return Needs(forms=settings.reading.forms, corpus=True)


def _one_answer(question: Question, settings: NoRetrievalSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    return settings.reading.step_bounds()


def step_bounds(question: Question, settings: OneStepSettings) -> tuple[StepBound, ...]:
    """See `SystemSpec`."""
    return (
        *most_pages(question, settings.pages, settings.retrieval.max_paragraph_words),
        StepBound(kind="retrieve", times=1),
        *settings.reading.step_bounds(settings.retrieval.most_words),
    )


def released(*, instructed: bool) -> dict[str, Any]:
    """See `Released`."""
    return released_retrieval(instructed=instructed) | released_reading(instructed=instructed)


SPECS = (
    SystemSpec(
        **description("no-retrieval"),
        settings=NoRetrievalSettings,
        open=no_retrieval,
        needs=lambda settings: Needs(forms=settings.reading.forms),
        released=released_reading,
        step_bounds=_one_answer,
    ),
    SystemSpec(
        **description("one-step"),
        settings=OneStepSettings,
        open=one_step,
        needs=run_needs,
        released=released,
        readerless=True,
        counts="one-step",
        step_bounds=step_bounds,
    ),
)
