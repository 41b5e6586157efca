"""IRCoT: interleaving retrieval with chain-of-thought reasoning (Trivedi et al., ACL 2023, section 3)."""

from cotrail.actions import Answer, Reason, Retrieve, StepFailed, System
from cotrail.prompting.answers import stated_answer
from cotrail.prompting.prompt import AnswerForm, Prompt
from cotrail.questions import Question
from cotrail.systems.collecting import collect, next_query, query_of
from cotrail.systems.reading import Shots, read, text_of
from cotrail.systems.settings import IRCoTSettings


def ircot(question: Question, shots: Shots, settings: IRCoTSettings) -> System:
    """Retrieves with the question, then reasons and retrieves in turn until a sentence states the answer."""
    retrieval = settings.retrieval
    query = query_of(question.text, retrieval)
    paragraphs = collect((), (yield Retrieve(query=query, count=retrieval.retrieval_count)), retrieval)
    sentences: tuple[str, ...] = ()
    while True:
        prompt = Prompt(
            demonstrations=shots[AnswerForm.COT],
            paragraphs=paragraphs,
            question=question.text,
            sentences=sentences,
            max_paragraph_words=retrieval.prompt_paragraph_words,
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
        paragraphs = collect(paragraphs, (yield Retrieve(query=query, count=retrieval.retrieval_count)), retrieval)
    answer = yield from read(question, paragraphs, shots, settings.reading, retrieval.prompt_paragraph_words)
    return Answer(text=answer, sentences=sentences, paragraphs=paragraphs)
