"""A question as terminals and viewers show it: how it was answered, step by step, and what is said of the answer."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.core.questions import JudgedAnswer
from cotrail.core.results import Failure
from cotrail.evaluation.causes.cause import Explanation
from cotrail.evaluation.metrics.scores import QuestionScores
from cotrail.models.queries.question_places import QuestionPlace as QuestionPlace
from cotrail.models.queries.question_places import read_place
from cotrail.models.queries.step_times import StepTimes as StepTimes
from cotrail.models.queries.step_times import read_step_times
from cotrail.services.runs.named_runs import RunRecord, find_run
from cotrail.services.views import exporting
from cotrail.services.views.answer_details import details_of
from cotrail.services.views.gold_paragraphs import FoundGold, gold_paragraphs
from cotrail.services.views.paragraph_names import names_in
from cotrail.services.views.question_records import explained
from cotrail.services.views.reasoning_trees import turns
from cotrail.services.views.run_verdicts import Verdict, verdicts_on
from cotrail.services.views.scored_questions import scores_of
from cotrail.services.views.shown_steps import ShownStep, shown_steps
from cotrail.services.views.tracing import TracedQuestion, find_question, read_question
from cotrail.services.views.verdicts import Verdict as AnswerVerdict
from cotrail.services.views.verdicts import verdict_of


class ShownQuestion(Struct, frozen=True, kw_only=True):
    """A question of a run, with a view of each step.

    corpus: the first of its run.
    reason: why it failed or is blocked; ended_by: see `cotrail.core.ended_by`.
    verdict: whether the answer is right; explanation: why it is wrong, where it is.
    judged: the answers of other runs that it grades, in a judge's run, which has no scores and no gold paragraphs.
    turns: what messages of a conversation are, by their steps.
    details: of the answer, as its system has them; names: of the paragraphs that they may refer to, by digest.
    verdicts: what judges say of the answer.
    """

    run: str
    system: str
    system_version: int
    dataset: str
    corpus: str | None
    question_id: str
    question: str
    status: str
    answer: str | None
    reason: Failure | None
    ended_by: str
    gold_answers: tuple[str, ...]
    judged: tuple[JudgedAnswer, ...]
    scores: QuestionScores
    verdict: AnswerVerdict
    explanation: Explanation | None
    gold_paragraphs: tuple[FoundGold, ...]
    steps: tuple[ShownStep, ...]
    turns: Mapping[int, str]
    details: Any
    names: Mapping[str, str]
    verdicts: tuple[Verdict, ...]


def show_question(connection: Connection, run: str, question: str) -> ShownQuestion:
    """A question as it stands; question: its id or, where none has it, its number in the run, from 1."""
    record = find_run(connection, run)
    traced = read_question(connection, record.id, question)
    return shown_question(record, traced, verdicts_on(connection, record, traced.key))


def shown_question(record: RunRecord, traced: TracedQuestion, verdicts: tuple[Verdict, ...] = ()) -> ShownQuestion:
    """The same of a question that is read already; verdicts: what judges say of its answer."""
    graded = bool(traced.judged)
    scores = {} if graded else scores_of(record, traced)
    details = None if graded else details_of(record, traced)
    return ShownQuestion(
        run=record.id,
        system=record.system,
        system_version=record.system_version,
        dataset=record.dataset,
        corpus=record.corpus,
        question_id=traced.key,
        question=traced.text,
        status=traced.status,
        answer=traced.answer,
        reason=traced.reason,
        ended_by=traced.ended_by,
        gold_answers=traced.answers,
        judged=traced.judged,
        scores=scores,
        verdict="unscored" if graded else verdict_of(traced, details, scores),
        explanation=None if graded else explained(record, traced, details, scores),
        gold_paragraphs=() if graded else gold_paragraphs(traced, record.dataset),
        steps=tuple(shown_steps(traced)),
        turns=turns(record, traced),
        details=traced.details,
        names={} if traced.details is None else names_in(traced),
        verdicts=verdicts,
    )


def question_place(connection: Connection, run: str, question: str) -> QuestionPlace:
    """Where a question stands in its run."""
    record = find_run(connection, run)
    return read_place(connection, record.id, find_question(connection, record.id, question))


def question_times(connection: Connection, run: str, question: str) -> tuple[StepTimes, ...]:
    """When its steps were asked for, begun and ended."""
    record = find_run(connection, run)
    return read_step_times(connection, find_question(connection, record.id, question))


def trace_document(connection: Connection, run: str, question: str) -> dict[str, Any]:
    """All that is recorded of a question, as `cotrail trace --json` has it (`exporting.QuestionTrace`)."""
    record = find_run(connection, run)
    traced = read_question(connection, record.id, question)
    return exporting.trace(record, traced, verdicts_on(connection, record, traced.key)).document()
