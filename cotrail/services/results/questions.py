"""Questions of a run: listed, and shown as terminals and viewers show them, with how each was answered."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct
from sqlalchemy import RowMapping

from cotrail.core.history import by_failure
from cotrail.core.questions import JudgedAnswer
from cotrail.errors import InputError
from cotrail.evaluation.causes.cause import Explanation
from cotrail.models.commands.submission import Submission
from cotrail.models.queries.listed_questions import Place, QuestionPlace, list_questions, list_uses, read_place
from cotrail.models.queries.runs import RunRecord, resolve_run
from cotrail.models.queries.traces import TracedQuestion, find_question, read_question
from cotrail.models.records.questions import QuestionInList, in_list
from cotrail.models.schema.states import QuestionStatus as QuestionStatus
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.results import exporting
from cotrail.services.results.causes import Verdict as AnswerVerdict
from cotrail.services.results.causes import details_of, explained, verdict_of
from cotrail.services.results.reasoning import gold_paragraphs, names_in, turns
from cotrail.services.results.steps import ShownStep, shown_steps
from cotrail.services.results.verdicts import Verdict, verdicts_on
from cotrail.services.runs.labels import find_run
from cotrail.services.runs.scores import shown_scores
from cotrail.services.store import reading


class ShownQuestion(exporting.AnsweredQuestion, frozen=True, kw_only=True):
    """A question of a run, with a view of each step.

    corpus: the first of its run.
    verdict: whether the answer is right; explanation: why it is wrong, where it is.
    judged: the answers of other runs that it grades, in a judge's run, which has no scores and no gold paragraphs.
    turns: what messages of a conversation are, by their steps.
    names: of the paragraphs that the details of the answer may refer to, by digest.
    """

    run: str
    system: str
    system_version: int
    dataset: str
    corpus: str | None
    judged: tuple[JudgedAnswer, ...]
    verdict: AnswerVerdict
    explanation: Explanation | None
    steps: tuple[ShownStep, ...]
    turns: Mapping[int, str]
    names: Mapping[str, str]
    verdicts: tuple[Verdict, ...]


def shown_question(
    record: RunRecord | Submission, traced: TracedQuestion, verdicts: tuple[Verdict, ...] = ()
) -> ShownQuestion:
    """A question as it stands; verdicts: what judges say of its answer. Takes long of long texts, and no connection."""
    graded = bool(traced.judged)
    scores = {} if graded else shown_scores(record, traced)
    details = None if graded else details_of(record, traced)
    return ShownQuestion(
        run=record.id,
        system=record.system,
        system_version=record.system_version,
        dataset=record.dataset,
        corpus=record.corpus,
        **exporting.answered(traced),
        judged=traced.judged,
        scores=scores,
        verdict="unscored" if graded else verdict_of(traced, details, scores),
        explanation=None if graded else explained(record, traced, details, scores),
        # Without a recall, as of a run that searches nothing, none was missed.
        gold_paragraphs=() if scores.get("paragraph_recall") is None else gold_paragraphs(traced, record.dataset),
        steps=tuple(shown_steps(traced)),
        turns=turns(record, traced),
        names={} if traced.details is None else names_in(traced),
        verdicts=verdicts,
    )


@operation("questions.show", "GET", "/runs/{run}/questions/{question}", Scope.READ)
def show_question(run: str, question: str) -> ShownQuestion:
    """Show how a question was answered: each step with what there is to show of it, the answer and what is said of it.

    question: its id or, where none has it, its number in the run, from 1.
    """
    with reading() as connection:
        record = find_run(connection, run)
        traced = read_question(connection, record.id, question)
        verdicts = verdicts_on(connection, record, traced.key)
    return shown_question(record, traced, verdicts)


@operation("questions.place", "GET", "/runs/{run}/questions/{question}/place", Scope.READ)
def show_place(run: str, question: str) -> QuestionPlace:
    """Say which question of its run this is, and which stand before and behind it."""
    with reading() as connection:
        record = find_run(connection, run)
        return read_place(connection, record.id, find_question(connection, record.id, question))


@operation("questions.trace", "GET", "/runs/{run}/questions/{question}/trace", Scope.READ)
def show_trace(run: str, question: str) -> dict[str, Any]:
    """Give all that is recorded of a question: its answer, its scores, and each step with its request and result."""
    # As `cotrail trace --json` has it (`exporting.QuestionTrace`).
    with reading() as connection:
        record = find_run(connection, run)
        traced = read_question(connection, record.id, question)
        return exporting.trace(record, traced, verdicts_on(connection, record, traced.key)).document()


class ListedQuestion(QuestionInList, frozen=True, kw_only=True):
    """A question in a list of all; finished_at: when it ended."""

    finished_at: datetime | None


class QuestionListPage(Struct, frozen=True, kw_only=True):
    """Questions of a run in their order; after: names the page that follows, None where none does."""

    run: str
    questions: tuple[ListedQuestion, ...]
    after: str | None


Limit = Annotated[int, Meta(ge=1, le=1000)]


@operation("questions.index", "GET", "/runs/{run}/questions", Scope.READ)
def show_questions(
    run: str, status: Sequence[QuestionStatus] = (), limit: Limit = 100, after: str | None = None
) -> QuestionListPage:
    """List a run's questions in their order.

    status: those of any of these, or all; after: the question behind which the page begins, by its id or number.
    """
    # Raises UnknownNameError.
    with reading() as connection:
        run_id = resolve_run(connection, run)
        behind = None if after is None else find_question(connection, run_id, after)
        chosen = status or tuple(QuestionStatus)
        rows = list_questions(connection, run_id, statuses=chosen, limit=limit + 1, after=behind)
        page, more = rows[:limit], len(rows) > limit
        return QuestionListPage(
            run=run_id, questions=tuple(map(_listed, page)), after=page[-1]["key"] if more else None
        )


def _listed(row: RowMapping) -> ListedQuestion:
    known = in_list(row)
    failed = by_failure(known["reason"]) if known["reason"] and row["status"] == QuestionStatus.FAILED else ""
    return ListedQuestion(**known | {"ended_by": known["ended_by"] or failed}, finished_at=row["finished_at"])


# Questions whose searches found a paragraph: a page of them.

LARGEST = 2**63 - 1


class ParagraphUse(Struct, frozen=True, kw_only=True):
    """A search that found the paragraph, and its question; collected: whether the answer rests on the paragraph too.

    rank: from 1; score: the engine's; paragraph_id: the paragraph's name in the corpus that was searched.
    """

    run: str
    question_id: str
    question: str
    status: QuestionStatus
    query: str
    rank: int
    score: float
    paragraph_id: str
    collected: bool


class ParagraphUses(Struct, frozen=True, kw_only=True):
    """Searches, the latest first; after: names the page that follows, None where none does."""

    uses: tuple[ParagraphUse, ...]
    after: str | None


@operation("corpora.uses", "GET", "/paragraphs/{digest}/uses", Scope.READ)
def show_uses(digest: str, limit: Limit = 50, after: str | None = None) -> ParagraphUses:
    """List the questions whose searches found a paragraph, the latest first; digest: that of its title and text."""
    # Raises InputError for an `after` of no page.
    with reading() as connection:
        rows = list_uses(connection, digest, limit + 1, None if after is None else _place(after))
        page = rows[:limit]
        uses = tuple(
            ParagraphUse(
                **{name: row[name] for name in ParagraphUse.__struct_fields__ if name != "collected"},
                collected=digest in (row["collected"] or ()),
            )
            for row in page
        )
        last = f"{page[-1]['step_id']}.{page[-1]['rank']}" if len(rows) > limit else None
        return ParagraphUses(uses=uses, after=last)


def _place(text: str) -> Place:
    parts = text.split(".")
    if len(parts) != len(Place._fields) or not all(each.isascii() and each.isdigit() for each in parts):
        raise InputError(f"{text!r} is the end of no page; take `after` of the page before")
    return Place(*(min(int(each[:20]), LARGEST) for each in parts))
