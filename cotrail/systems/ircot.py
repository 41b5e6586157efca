"""IRCoT: interleaving retrieval with chain-of-thought reasoning (Trivedi et al., ACL 2023, section 3)."""

from cotrail.core.actions.reason import Reason
from cotrail.core.answer_extraction import stated_answer
from cotrail.core.prompts import AnswerForm, Prompt
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.systems.collecting import collect, next_query, query_of, search
from cotrail.systems.pages import find_pages
from cotrail.systems.reading import Shots, instructed, pinned_is_last, pinned_paragraph, read, shown, written
from cotrail.systems.settings import IRCoTSettings


def ircot(question: Question, shots: Shots, settings: IRCoTSettings) -> System:
    """Retrieves with the question, then reasons and retrieves in turn until a sentence states the answer."""
    retrieval, demonstrations = settings.retrieval, shots[AnswerForm.COT]
    empty = settings.reading.answers == "released"
    titles = yield from find_pages(question, shots, settings.pages, settings.prompting)
    pinned = pinned_paragraph(question)
    found = yield search(query_of(question.text, retrieval), retrieval, titles, settings.pages.scope)
    paragraphs = collect(shown(question, ()), found, retrieval, pinned)
    sentences: tuple[str, ...] = ()
    while True:
        prompt = Prompt(
            demonstrations=demonstrations,
            paragraphs=paragraphs,
            question=instructed(question.text, demonstrations.instruction),
            sentences=sentences,
            max_paragraph_words=retrieval.prompt_paragraph_words,
            drop=settings.prompting.drop,
            pinned_last=pinned_is_last(question, settings.prompting),
        )
        reason = Reason(prompt=prompt, max_tokens=settings.max_sentence_tokens, splitter=settings.splitter)
        sentence = yield from written(reason)
        if not sentence:
            break
        sentences += (sentence,)
        if stated_answer(sentence, empty=empty) is not None or len(sentences) >= settings.max_sentences:
            break
        query = next_query(question.text, sentences, settings)
        found = yield search(query, retrieval, titles, settings.pages.scope)
        paragraphs = collect(paragraphs, found, retrieval, pinned)
    if settings.reading.reader == "none":
        answer = chain_answer(sentences, empty=empty)
    else:
        answer = yield from read(question, paragraphs, shots, settings.reading, settings.prompting, retrieval)
    return Answer(text=answer, sentences=sentences, paragraphs=paragraphs)


def chain_answer(sentences: tuple[str, ...], *, empty: bool) -> str:
    """The answer that the chain itself states, or the whole chain where it states none (appendix F)."""
    chain = " ".join(sentences)
    stated = stated_answer(chain, empty=empty)
    return chain if stated is None else stated
