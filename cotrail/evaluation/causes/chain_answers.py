"""Whether a chain of thought has the right answer, and whether a limit ended it before it had any."""

from cotrail.common.printable_text import cut
from cotrail.core.answer_extraction import stated_answer
from cotrail.core.ended_by import LIMIT
from cotrail.evaluation.causes.answer_forms import LONGEST, same_but_for_form
from cotrail.evaluation.causes.gold_fates import answers_of
from cotrail.evaluation.causes.plain_words import plain
from cotrail.evaluation.causes.question_record import QuestionRecord
from cotrail.evaluation.metrics.answer_scores import answer_scores


def right_in_chain(record: QuestionRecord) -> str:
    """Where the chain has the right answer, in words; empty where it hasn't.

    The last sentence that states an answer decides. Where none does, a published answer has to stand in the chain, and
    the answer given not behind it.
    """
    stated = [(number, said) for number, said in enumerate(map(stated_answer, record.sentences), start=1) if said]
    if stated:
        number, answer = stated[-1]
        return f"sentence {number} states '{cut(answer, LONGEST)}'" if _is_right(record, answer) else ""
    return _named_in_chain(record)


def limit_reached(record: QuestionRecord) -> str:
    """The limit that ended the question before it stated an answer, in words; empty where none did."""
    if not record.ended_by.startswith(LIMIT):
        return ""
    limit = record.ended_by.removeprefix(LIMIT)
    if not record.answer.strip():
        return f"the limit of {limit} ended it without an answer"
    if any(stated_answer(each) is not None for each in record.sentences):
        return ""
    return f"the limit of {limit} ended it before its chain stated an answer"


def _is_right(record: QuestionRecord, answer: str) -> bool:
    scores = answer_scores(record.scoring, answer, record.answers)
    if scores is not None and scores.em == 1:
        return True
    return bool(same_but_for_form(record.scoring, record.question, answer, record.answers))


def _named_in_chain(record: QuestionRecord) -> str:
    padded = [f" {plain(each)} " for each in record.sentences]
    given = plain(record.short)
    chain = "".join(padded)
    for span in answers_of(record):
        place = chain.rfind(f" {plain(span)} ")
        if place >= 0 and (not given or chain.rfind(f" {given} ") <= place):
            number = next(number for number, each in enumerate(padded, start=1) if f" {plain(span)} " in each)
            return f"sentence {number} has '{span}'"
    return ""
