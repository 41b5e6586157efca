"""Error analysis of a run: the cause of each wrong answer, and what people say of it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.common.printable_text import cut
from cotrail.core.actions.entail import Entail, Extract
from cotrail.core.actions.generate import Prompted, Read, seen_paragraphs
from cotrail.core.actions.kind import UnreadAction
from cotrail.core.results import Entailed, Extracted, Generated
from cotrail.data.datasets.registry import scoring_of
from cotrail.errors import InputError
from cotrail.evaluation.causes.cause import Cause as Cause
from cotrail.evaluation.causes.cause import CauseCount as CauseCount
from cotrail.evaluation.causes.cause import CauseLabel, Explanation, Sign, cause_counts, label_agreements
from cotrail.evaluation.causes.cause import LabelAgreement as LabelAgreement
from cotrail.evaluation.causes.explaining import explain
from cotrail.evaluation.causes.gold_fates import FoundParagraph, Judgement, QuestionRecord, SeenParagraph
from cotrail.evaluation.metrics.factual_errors import sentences_of
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.models.queries.annotations import read_cause_labels
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion, TracedStep, read_question, read_questions
from cotrail.models.records.runs import SubmittedRun
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import LOCAL_ONLY, operation
from cotrail.services.runs.labels import find_run
from cotrail.services.runs.scores import scores_of
from cotrail.services.store import reading
from cotrail.systems.registry import recorded_system
from cotrail.systems.searchain.tree import Tree

# What a recorded question says of its answer: details beyond the text, whether it is right, and why it isn't.

Verdict = Literal["right", "wrong", "unscored", "unfinished"]
"""Of an answer; `unscored`: nothing published says whether it is right; `unfinished`: there is no answer (yet)."""

LONGEST_REASON = 200
"""Characters of a failure's message: servers answer with whole pages."""


def details_of(record: SubmittedRun, traced: TracedQuestion) -> Struct | None:
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
    run: SubmittedRun, question: TracedQuestion, details: Struct | None, scores: QuestionScores
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


def question_record(
    run: SubmittedRun, question: TracedQuestion, *, right: bool, searched: bool = True
) -> QuestionRecord:
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


Outcome = Literal["right", "wrong", "open", "cancelled", "unscored"]
"""Of a question: `open`, it has steps to come; `cancelled`, it wasn't asked to its end; `unscored`, nothing published
says whether its answer is right. Any other question without an answer is wrong."""


class WrongAnswer(Struct, frozen=True, kw_only=True):
    """A wrong answer with its cause.

    number: of the question in the run, from 1; answer: None where there is none. facts: behind the cause, in a
    sentence; signs: all causes that apply, the cause first. labels: what people say of it.
    """

    question_id: str
    number: int
    question: str
    kinds: Mapping[str, str]
    answers: tuple[str, ...]
    answer: str | None
    cause: Cause
    facts: str
    signs: tuple[Sign, ...]
    labels: tuple[CauseLabel, ...] = ()


class CheckedQuestion(Struct, frozen=True, kw_only=True):
    """A question that was looked at; wrong: where its answer is."""

    outcome: Outcome
    wrong: WrongAnswer | None = None


class RunErrors(Struct, frozen=True, kw_only=True):
    """The wrong answers of a run by their causes.

    outcomes: the number of questions by how they came out. causes: all of them in the order of precedence; none where
    no answer is wrong. kinds: how many wrong answers of each kind of questions have a cause, by that sort of kinds and
    the kind. agreements: with each person who labelled causes.
    """

    run: str
    system: str
    dataset: str
    questions: int
    outcomes: dict[Outcome, int]
    causes: tuple[CauseCount, ...]
    kinds: dict[str, dict[str, dict[Cause, int]]]
    wrong: tuple[WrongAnswer, ...]
    agreements: tuple[LabelAgreement, ...]


def check_questions(connection: Connection, run: RunRecord) -> Iterator[CheckedQuestion]:
    """Look at all questions of a run as it stands, one after the other, in their order."""
    labels: dict[str, list[CauseLabel]] = defaultdict(list)
    for label in read_cause_labels(connection, run.id):
        labels[label.question_id].append(label)
    for number, question in enumerate(read_questions(connection, run.id), start=1):
        outcome, explanation = _check(run, question)
        wrong = None
        if explanation:
            wrong = WrongAnswer(
                question_id=question.key,
                number=number,
                question=question.text,
                kinds=question.kinds,
                answers=question.answers,
                answer=question.answer,
                cause=explanation.cause,
                facts=explanation.facts,
                signs=explanation.signs,
                labels=tuple(labels[question.key]),
            )
        yield CheckedQuestion(outcome=outcome, wrong=wrong)


def refuse_unless_wrong(connection: Connection, run: RunRecord, keys: Iterable[str]) -> None:
    """Raise InputError where the answer to one of these questions isn't wrong: then it has no cause."""
    for key in keys:
        outcome, explanation = _check(run, read_question(connection, run.id, key))
        if explanation is None:
            raise InputError(f"question {key!r}: {_NOT_WRONG[outcome]}; a label says why an answer is wrong")


_NOT_WRONG: Mapping[Outcome, str] = {
    "right": "its answer is right",
    "open": "it has no answer yet",
    "cancelled": "it was never asked to its end",
    "unscored": "nothing published says whether its answer is right",
}


def run_errors(run: RunRecord, checked: Iterable[CheckedQuestion]) -> RunErrors:
    """The errors of a run of these questions."""
    outcomes: dict[Outcome, int] = {"right": 0, "wrong": 0, "open": 0, "cancelled": 0, "unscored": 0}
    wrong: list[WrongAnswer] = []
    for each in checked:
        outcomes[each.outcome] += 1
        wrong += [each.wrong] if each.wrong else []
    labels = [label for each in wrong for label in each.labels]
    return RunErrors(
        run=run.id,
        system=run.system,
        dataset=run.dataset,
        questions=sum(outcomes.values()),
        outcomes=outcomes,
        causes=cause_counts([Explanation(signs=each.signs) for each in wrong]),
        kinds=_by_kind(wrong),
        wrong=tuple(wrong),
        agreements=tuple(label_agreements({each.question_id: each.cause for each in wrong}, labels)),
    )


def _check(run: RunRecord, question: TracedQuestion) -> tuple[Outcome, Explanation | None]:
    """How a question came out, and why its answer is wrong, where it is."""
    scores = scores_of(run, question)
    explanation = explained(run, question, details_of(run, question), scores)
    return _outcome(question, scores) if explanation is None else "wrong", explanation


def _outcome(question: TracedQuestion, scores: QuestionScores) -> Outcome:
    """How a question came out whose answer isn't wrong."""
    if question.status == QuestionStatus.OPEN:
        return "open"
    if question.status == QuestionStatus.CANCELLED:
        return "cancelled"
    return "unscored" if scores["answer_em"] is None or scores["rouge_l"] is not None else "right"


def _by_kind(wrong: Iterable[WrongAnswer]) -> dict[str, dict[str, dict[Cause, int]]]:
    """The kinds with most wrong answers first, and the causes in their order."""
    counts: dict[str, dict[str, Counter[Cause]]] = defaultdict(lambda: defaultdict(Counter))
    for each in wrong:
        for sort, kind in each.kinds.items():
            counts[sort][kind][each.cause] += 1
    return {
        sort: {
            kind: {cause: of[cause] for cause in Cause if of[cause]}
            for kind, of in sorted(kinds.items(), key=lambda item: (-item[1].total(), item[0]))
        }
        for sort, kinds in counts.items()
    }


Follow = Annotated[Callable[[Iterable[CheckedQuestion], int], Iterable[CheckedQuestion]], LOCAL_ONLY]
"""Passes questions on as they are looked at, and knows how many there are."""


def unseen(checked: Iterable[CheckedQuestion], _: int) -> Iterable[CheckedQuestion]:
    """Passes the questions on."""
    return checked


@operation("errors.show", "GET", "/runs/{run}/errors", Scope.READ)
def show_errors(run: str, follow: Follow = unseen) -> RunErrors:
    """Say why a run's wrong answers are wrong, by rules over what is recorded."""
    with reading() as connection:
        record = find_run(connection, run)
        return run_errors(record, follow(check_questions(connection, record), record.size))
