"""Questions as a run's page shows them, and the states by which a reader filters them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from cotrail.common.humanize import number
from cotrail.core.paragraphs import Paragraph
from cotrail.evaluation.causes.cause import Cause, Explanation
from cotrail.evaluation.causes.cause_label import CauseLabel
from cotrail.evaluation.metrics.scores import QuestionScores
from cotrail.faithfulness.weighing import Weighing
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.views.answer_details import details_of
from cotrail.services.views.gold_paragraphs import FoundGold, gold_paragraphs
from cotrail.services.views.paragraph_names import names_in
from cotrail.services.views.question_records import explained
from cotrail.services.views.reasoning_trees import ShownTree, shown_tree, turns
from cotrail.services.views.reports.paragraph_links import anchor_of
from cotrail.services.views.reports.reported_steps import ReportedStep, reported_step
from cotrail.services.views.reports.reported_weighings import ReportedWeighing, evidence_paragraphs, reported_weighing
from cotrail.services.views.shown_steps import shown_steps
from cotrail.services.views.verdicts import Verdict, verdict_of
from cotrail.systems.searchain.tree import Tree

MARKS: Mapping[Verdict, str] = {"right": "✓ right", "wrong": "✗ wrong", "unscored": ""}
"""The words beside an answer, so that none depends on its colour; an unfinished question has its status."""


class ReportedQuestion(Struct, frozen=True, kw_only=True):
    """A question; gold_found: whether all gold paragraphs were collected, None where none are published.

    details: of an answer, as JSON, where their type has no form of its own.
    explanation: why the answer is wrong, where it is; cause_labels: what people say of that.
    """

    number: int
    key: str
    text: str
    status: str
    verdict: Verdict
    gold_found: bool | None
    answer: str
    gold: str
    em: str
    cover: str
    f1: str
    recall: str
    gold_paragraphs: tuple[FoundGold, ...]
    reason: str
    steps: tuple[ReportedStep, ...]
    reasoning: ShownTree | None = None
    weighing: ReportedWeighing | None = None
    details: str = ""
    ended_by: str = ""
    explanation: Explanation | None = None
    cause_labels: tuple[CauseLabel, ...] = ()

    @property
    def mark(self) -> str:
        """The verdict in words; the status of a question without an answer."""
        if self.verdict == "unfinished":
            return "… not finished" if self.status == QuestionStatus.OPEN else f"! {self.status}"
        return MARKS[self.verdict]

    @property
    def classes(self) -> str:
        """The classes by which filters choose it."""
        gold = {None: "", True: "gold-found", False: "gold-missing"}[self.gold_found]
        cause = f"cause-{self.explanation.cause.slug}" if self.explanation else ""
        return " ".join(filter(None, ("q", self.verdict, gold, cause)))


class Filter(Struct, frozen=True, kw_only=True):
    """A choice of questions; name: of its control on the page; questions: how many it shows."""

    name: str
    title: str
    questions: int


FILTERS: Mapping[str, tuple[str, Callable[[ReportedQuestion], bool]]] = {
    "all": ("all", lambda _: True),
    "right": ("right", lambda each: each.verdict == "right"),
    "wrong": ("wrong", lambda each: each.verdict == "wrong"),
    "found": ("gold found, answer wrong", lambda each: each.verdict == "wrong" and each.gold_found is True),
    "missing": ("gold paragraphs missing", lambda each: each.gold_found is False),
    "unfinished": ("not finished", lambda each: each.verdict == "unfinished"),
}
"""Titles and conditions of the filters by name; the style sheet hides what they leave out, without a script."""


def filters(questions: Sequence[ReportedQuestion]) -> list[Filter]:
    """All filters, with the number of questions that each shows."""
    return [
        Filter(name=name, title=title, questions=sum(map(shows, questions))) for name, (title, shows) in FILTERS.items()
    ]


def cause_filters(questions: Sequence[ReportedQuestion]) -> list[Filter]:
    """A filter for each cause that a wrong answer has, in the order of precedence."""
    counts = Counter(each.explanation.cause for each in questions if each.explanation)
    return [
        Filter(name=f"cause-{cause.slug}", title=cause, questions=counts[cause]) for cause in Cause if counts[cause]
    ]


def reported_question(
    record: RunRecord,
    place: int,
    question: TracedQuestion,
    row: QuestionScores,
    cause_labels: Sequence[CauseLabel] = (),
) -> ReportedQuestion:
    """The question; place: its number in the run, from 1; cause_labels: of the cause of its wrong answer."""
    details, names, steps = details_of(record, question), names_in(question), list(shown_steps(question))
    weighed = (
        reported_weighing(details, steps, question.answers, record.dataset) if isinstance(details, Weighing) else None
    )
    tree = shown_tree(details, names) if isinstance(details, Tree) else None
    labels = turns(record, question)
    other = "" if weighed or tree or question.details is None else msgspec.json.encode(question.details).decode()
    return ReportedQuestion(
        number=place,
        key=question.key,
        text=question.text,
        status=question.status,
        verdict=verdict_of(question, details, row),
        gold_found=None if row["paragraph_recall"] is None else row["paragraph_recall"] == 1,
        answer=question.answer or ("(empty)" if question.status == QuestionStatus.FINISHED else ""),
        gold=" / ".join(question.answers),
        em=number(row["answer_em"], 0),
        cover=number(row["cover_em"], 0),
        f1=number(row["answer_f1"], 2),
        recall=number(row["paragraph_recall"], 2),
        gold_paragraphs=gold_paragraphs(question, record.dataset),
        reason=f"{question.reason.type}: {question.reason.message}" if question.reason else "",
        steps=tuple(reported_step(step, turn=labels.get(step.sequence, "")) for step in steps),
        reasoning=tree,
        weighing=weighed,
        details=other,
        ended_by=question.ended_by,
        explanation=explained(record, question, details, row),
        cause_labels=tuple(cause_labels),
    )


def reported_paragraphs(record: RunRecord, questions: Sequence[TracedQuestion]) -> list[tuple[str, Paragraph]]:
    """Every paragraph that was collected or that a sentence was judged by, once, by title."""
    by_anchor = {anchor_of(each.digest): each for question in questions for each in _paragraphs(record, question)}
    return sorted(by_anchor.items(), key=lambda item: (item[1].title, item[0]))


def _paragraphs(record: RunRecord, question: TracedQuestion) -> list[Paragraph]:
    details = details_of(record, question)
    evidence = evidence_paragraphs(details, question) if isinstance(details, Weighing) else []
    return [*question.paragraphs, *evidence]
