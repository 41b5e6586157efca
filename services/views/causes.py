"""Error analysis of a run: the cause of each wrong answer, and what people say of it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy import Connection

from cotrail.evaluation.causes.cause import Explanation
from cotrail.evaluation.causes.cause_counts import cause_counts
from cotrail.evaluation.causes.label_agreement import label_agreements
from cotrail.evaluation.metrics.scores import QuestionScores
from cotrail.models.queries.cause_labels import read_cause_labels
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion, read_questions
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.views.answer_details import details_of
from cotrail.services.views.question_records import explained
from cotrail.services.views.run_errors import Cause, CauseLabel, CheckedQuestion, Outcome, RunErrors, WrongAnswer
from cotrail.services.views.scored_questions import scores_of


def check_questions(connection: Connection, run: RunRecord) -> Iterator[CheckedQuestion]:
    """Look at all questions of a run as it stands, one after the other, in their order."""
    labels: dict[str, list[CauseLabel]] = defaultdict(list)
    for label in read_cause_labels(connection, run.id):
        labels[label.question_id].append(label)
    for number, question in enumerate(read_questions(connection, run.id), start=1):
        scores = scores_of(run, question)
        explanation = explained(run, question, details_of(run, question), scores)
        if explanation is None:
            yield CheckedQuestion(outcome=_outcome(question, scores))
        else:
            wrong = _wrong_answer(number, question, explanation, labels[question.key])
            yield CheckedQuestion(outcome="wrong", wrong=wrong)


def run_errors(run: RunRecord, checked: Iterable[CheckedQuestion]) -> RunErrors:
    """The errors of a run of these questions."""
    outcomes: dict[Outcome, int] = {"right": 0, "wrong": 0, "open": 0, "unscored": 0}
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


def _outcome(question: TracedQuestion, scores: QuestionScores) -> Outcome:
    if question.status == QuestionStatus.OPEN:
        return "open"
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
