"""What a recorded question says of its answer: details beyond the text, whether it is right, and why it isn't."""

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from cotrail.common.printable_text import cut
from cotrail.core.actions.entail import Entail, Extract
from cotrail.core.actions.generate import Prompted, Read, seen_paragraphs
from cotrail.core.actions.kind import UnreadAction
from cotrail.core.results import Entailed, Extracted, Generated
from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.causes.cause import Explanation
from cotrail.evaluation.causes.explaining import explain
from cotrail.evaluation.causes.question_record import FoundParagraph, Judgement, QuestionRecord, SeenParagraph
from cotrail.evaluation.metrics.factual_errors import sentences_of
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion, TracedStep
from cotrail.models.schema.states import QuestionStatus
from cotrail.systems.registry import recorded_system
from cotrail.systems.searchain.tree import Tree

Verdict = Literal["right", "wrong", "unscored", "unfinished"]
"""Of an answer; `unscored`: nothing published says whether it is right; `unfinished`: there is no answer (yet)."""

LONGEST_REASON = 200
"""Characters of a failure's message: servers answer with whole pages."""


def details_of(record: RunRecord, traced: TracedQuestion) -> Struct | None:
    """The details of a question's answer, in the type that the run's system names; see `details_in`."""
    return details_in(record.system, record.system_version, traced.details)


def details_in(system: str, version: int, details: Any) -> Struct | None:
    """Details as they are recorded, in the type that this version of the system names.

    None where there are none, or where this release doesn't have the system any more or has other details for it:
    traces show them as JSON then.
    """
    spec = recorded_system(system, version)
    return spec.details_in(details) if spec else None


def verdict_of(question: TracedQuestion, details: Struct | None, scores: QuestionScores) -> Verdict:
    """The verdict by exact match or accuracy; details: of the answer, in the type that the system names."""
    # The final content of a tree has the answer among other words.
    agreement = scores["cover_em"] if isinstance(details, Tree) else scores["answer_em"]
    if question.status != QuestionStatus.FINISHED:
        return "unfinished"
    if agreement is None:
        return "unscored"
    return "right" if agreement == 1 else "wrong"


def explained(
    run: RunRecord, question: TracedQuestion, details: Struct | None, scores: QuestionScores
) -> Explanation | None:
    """Why a question's answer is wrong or missing.

    None where it is right, while it is open, where it was cancelled and so never asked to its end, and where nothing
    tells: of long answers no metric says whether they are right. details: see `verdict_of`.
    """
    if (
        scores["answer_em"] is None
        or scores["rouge_l"] is not None
        or question.status in (QuestionStatus.OPEN, QuestionStatus.CANCELLED)
    ):
        return None
    right = verdict_of(question, details, scores) == "right"
    return explain(question_record(run, question, right=right, searched=scores["paragraph_recall"] is not None))


def question_record(run: RunRecord, question: TracedQuestion, *, right: bool, searched: bool = True) -> QuestionRecord:
    """The question; right: whether its answer is; searched: whether its run searches, and so may miss gold."""
    chain, reading = _chains(question)
    return QuestionRecord(
        question=question.text,
        scoring=scoring_of(run.dataset),
        answers=question.answers,
        gold=question.gold if searched else (),
        pinned=question.pinned,
        right=right,
        answer=question.answer or "",
        stated=question.stated,
        sentences=chain,
        reading=reading,
        searches=sum(step.query is not None and step.result is not None for step in question.steps),
        found=tuple(
            FoundParagraph(paragraph=hit.paragraph, step=step.sequence, rank=hit.rank)
            for step in question.steps
            for hit in step.hits
        ),
        seen=_seen(question),
        judgements=tuple(_judgements(question)),
        ended_by=question.ended_by,
        trouble=_trouble(question),
        unread=sum(isinstance(step.action, UnreadAction) for step in question.steps),
    )


def _chains(question: TracedQuestion) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The question's chain and its reader's; where it has none of its own, the reader's is the question's."""
    results = [step.result for step in question.steps if isinstance(step.action, Read)]
    read = [result.text for result in results if isinstance(result, Generated)]
    reading = sentences_of(read[-1]) if read else ()
    if question.sentences or len(reading) < 2:
        return question.sentences, reading
    return reading, ()


def _seen(question: TracedQuestion) -> tuple[SeenParagraph, ...]:
    """What models saw, each text of a paragraph at the step that first showed it."""
    first: dict[tuple[str, str], SeenParagraph] = {}
    for step in question.steps:
        for each in _seen_at(step):
            first.setdefault((each.paragraph.digest, each.text), each)
    return tuple(first.values())


def _seen_at(step: TracedStep) -> Iterator[SeenParagraph]:
    match step.carried_out, step.result:
        case Prompted() as action, Generated() as result:
            for paragraph, text in seen_paragraphs(action, result):
                yield SeenParagraph(paragraph=paragraph, step=step.sequence, text=text)
        case (Entail(premise=paragraph), Entailed()) | (Extract(paragraph=paragraph), Extracted()):
            yield SeenParagraph(paragraph=paragraph, step=step.sequence, text=paragraph.statement)


def _judgements(question: TracedQuestion) -> Iterator[Judgement]:
    for step in question.steps:
        match step.action, step.result:
            case Entail() as action, Entailed() as result:
                yield Judgement(
                    sentence=action.hypothesis,
                    paragraph=action.premise,
                    step=step.sequence,
                    entailment=result.entailment,
                    contradiction=result.contradiction,
                )


def _trouble(question: TracedQuestion) -> str:
    """Why there is no answer; empty where there is one."""
    if question.status == QuestionStatus.FINISHED:
        return ""
    why = f": {question.reason.type}: {cut(question.reason.message, LONGEST_REASON)}" if question.reason else ""
    return f"the question is {question.status}{why}"
