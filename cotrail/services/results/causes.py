"""Error analysis of a run: the cause of each wrong answer, and what people say of it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.errors import InputError
from cotrail.evaluation.causes.cause import Cause as Cause
from cotrail.evaluation.causes.cause import CauseCount as CauseCount
from cotrail.evaluation.causes.cause import CauseLabel, Explanation, Sign, cause_counts, label_agreements
from cotrail.evaluation.causes.cause import LabelAgreement as LabelAgreement
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.models.queries.annotations import read_cause_labels
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion, read_question, read_questions
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import LOCAL_ONLY, operation
from cotrail.services.results.question_records import details_of, explained
from cotrail.services.runs.labels import find_run
from cotrail.services.runs.scores import scores_of
from cotrail.services.store import reading

# The wrong answers of a run, with their causes.

Outcome = Literal["right", "wrong", "open", "cancelled", "unscored"]
"""Of a question: `open`, it has steps to come; `cancelled`, it wasn't asked to its end; `unscored`, nothing published
says whether its answer is right. Any other question without an answer is wrong."""


class WrongAnswer(Struct, frozen=True, kw_only=True):
    """A wrong answer with its cause.

    number: of the question in the run, from 1; answer: None where there is none.
    facts: behind the cause, in a sentence; signs: all causes that apply, the cause first.
    labels: what people say of it.
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

    outcomes: the number of questions by how they came out.
    causes: all of them in the order of precedence; none where no answer is wrong.
    kinds: how many wrong answers of each kind of questions have a cause, by that sort of kinds and the kind.
    agreements: with each person who labelled causes.
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
        wrong = _wrong_answer(number, question, explanation, labels[question.key]) if explanation else None
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


def _wrong_answer(
    number: int, question: TracedQuestion, explanation: Explanation, labels: Sequence[CauseLabel]
) -> WrongAnswer:
    return WrongAnswer(
        question_id=question.key,
        number=number,
        question=question.text,
        kinds=question.kinds,
        answers=question.answers,
        answer=question.answer,
        cause=explanation.cause,
        facts=explanation.facts,
        signs=explanation.signs,
        labels=tuple(labels),
    )


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
