"""IRCoT: interleaving retrieval with chain-of-thought reasoning (Trivedi et al., ACL 2023, section 3)."""

from cotrail.actions import Answer, Reason, Retrieve, StepFailed, System
from cotrail.prompting.answers import stated_answer
from cotrail.prompting.prompt import AnswerForm, Prompt
from cotrail.questions import Question
from cotrail.systems.collecting import collect, next_query, query_of
from cotrail.systems.pages import find_pages
from cotrail.systems.reading import Shots, instructed, read, shown, text_of
from cotrail.systems.settings import IRCoTSettings


def ircot(question: Question, shots: Shots, settings: IRCoTSettings) -> System:
    """Retrieves with the question, then reasons and retrieves in turn until a sentence states the answer."""
    retrieval, demonstrations = settings.retrieval, shots[AnswerForm.COT]
    titles = yield from find_pages(question, shots, settings.pages, settings.prompting)
    scope = settings.pages.scope if titles else "only"
    query = query_of(question.text, retrieval)
    found = yield Retrieve(query=query, count=retrieval.retrieval_count, titles=titles, scope=scope)
    paragraphs = collect(shown(question, ()), found, retrieval)
    sentences: tuple[str, ...] = ()
    while True:
        prompt = Prompt(
            demonstrations=demonstrations,
            paragraphs=paragraphs,
            question=instructed(question.text, demonstrations.instruction),
            sentences=sentences,
            max_paragraph_words=retrieval.prompt_paragraph_words,
            drop=settings.prompting.drop,
        )
        try:
            sentence = text_of((yield Reason(prompt=prompt, max_tokens=settings.max_sentence_tokens)))
        except StepFailed as failed:
            if failed.failure.type != "EmptyGenerationError":
                raise
            break
        sentences += (sentence,)
        if stated_answer(sentence) is not None or len(sentences) >= settings.max_sentences:
            break
        query = next_query(question.text, sentences, settings)
        found = yield Retrieve(query=query, count=retrieval.retrieval_count, titles=titles, scope=scope)
        paragraphs = collect(paragraphs, found, retrieval)
    if settings.reading.reader == "none":
        answer = chain_answer(sentences)
    else:
        answer = yield from read(question, paragraphs, shots, settings.reading, settings.prompting, retrieval)
    return Answer(text=answer, sentences=sentences, paragraphs=paragraphs)


def chain_answer(sentences: tuple[str, ...]) -> str:
    """The answer that the chain itself states, or the whole chain where it states none (appendix F)."""
    chain = " ".join(sentences)
    return stated_answer(chain) or chain
