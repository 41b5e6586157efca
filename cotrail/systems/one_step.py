"""OneR: one-step retrieval, then the reader (IRCoT, section 4.1)."""

from cotrail.actions import Answer, Retrieve, System
from cotrail.questions import Question
from cotrail.systems.collecting import collect, query_of
from cotrail.systems.reading import Shots, read
from cotrail.systems.settings import OneStepSettings


def one_step(question: Question, shots: Shots, settings: OneStepSettings) -> System:
    """Retrieves with the question alone."""
    retrieval = settings.retrieval
    found = yield Retrieve(query=query_of(question.text, retrieval), count=retrieval.retrieval_count)
    paragraphs = collect((), found, retrieval)
    answer = yield from read(question, paragraphs, shots, settings.reading, retrieval.prompt_paragraph_words)
    return Answer(text=answer, paragraphs=paragraphs)
