"""OneR: one-step retrieval, then the reader (IRCoT, section 4.1)."""

from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.systems.parts.pages import find_pages
from cotrail.systems.parts.reading import Shots, pinned_paragraph, read
from cotrail.systems.parts.retrieval import collect, query_of, search
from cotrail.systems.rethinking.settings import OneStepSettings


def one_step(question: Question, shots: Shots, settings: OneStepSettings) -> System:
    """Retrieves with the question alone."""
    retrieval = settings.retrieval
    titles = yield from find_pages(question, shots, settings.pages, settings.prompting)
    found = yield search(query_of(question.text, retrieval), retrieval, titles, settings.pages.scope)
    paragraphs = collect((), found, retrieval, pinned_paragraph(question))
    if settings.reading.reader == "none":
        return Answer(text="", paragraphs=paragraphs)
    answer = yield from read(question, paragraphs, shots, settings.reading, settings.prompting, retrieval)
    return Answer(text=answer, paragraphs=paragraphs)
