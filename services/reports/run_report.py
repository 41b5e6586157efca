"""Report of a run: one HTML page with its configuration, scores, and the reasoning behind every answer."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.common.humanize import count, cut, duration, number
from cotrail.core.paragraphs import Hit, Paragraph
from cotrail.evaluation.metrics.question_scores import CAVEAT, DEFINITIONS, QuestionScores
from cotrail.evaluation.metrics.supporting_paragraphs import is_gold
from models.queries.progress import count_repeated, read_progress
from models.queries.runs import read_run, resolve_run
from models.queries.traces import TracedQuestion, TracedStep, read_questions
from models.schema.states import QuestionStatus
from services.reports.charts import recall_by_search, sentences_per_question
from services.reports.configuration import configuration, local
from services.reports.pages import page
from services.scoring import run_scores

SNIPPET = 190
"""Characters of a paragraph beside a sentence; each whole paragraph is at the end of the page, once."""

TITLES = {
    "answer_em": "Exact match",
    "answer_f1": "Answer F1",
    "support_recall": "Gold paragraphs found",
    "paragraphs_collected": "Paragraphs collected",
}


class ReportedHit(Struct, frozen=True, kw_only=True):
    """A paragraph that a search added."""

    title: str
    snippet: str
    anchor: str
    rank: int
    score: str
    gold: bool


class ReportedStep(Struct, frozen=True, kw_only=True):
    """A step as the report shows it."""

    kind: str
    text: str
    found: tuple[ReportedHit, ...] = ()
    known: int = 0
    """The number of hits that were collected before, or left out."""
    note: str = ""
    failed: bool = False


class ReportedQuestion(Struct, frozen=True, kw_only=True):
    """A question as the report shows it."""

    number: int
    key: str
    text: str
    status: str
    answer: str
    gold: str
    em: str
    f1: str
    recall: str
    right: bool
    missing: bool
    reason: str
    steps: tuple[ReportedStep, ...]


class RunPage(Struct, frozen=True, kw_only=True):
    """The report of a run; questions: how many it holds."""

    html: str
    questions: int


def run_report(connection: Connection, run: str) -> RunPage:
    """The report of a run as it stands; run: its id, the beginning of it, or `latest`."""
    record = read_run(connection, resolve_run(connection, run))
    # All of it from one connection, which sees one snapshot: the numbers agree while workers record.
    progress = read_progress(connection, record.id)
    repeated = count_repeated(connection, record.id)
    questions = list(read_questions(connection, record.id))
    rows = [question.scores(record.dataset) for question in questions]
    scores = run_scores(record, progress, rows)
    html = page(
        "report.html",
        run=record,
        standing=progress.standing,
        submitted=local(record.created_at),
        written=f"{datetime.now():%Y-%m-%d %H:%M}",
        configuration=list(configuration(record)),
        scores=scores,
        metrics=[(title, _metric(name, scores.metrics[name]), DEFINITIONS[name]) for name, title in TITLES.items()],
        caveat=CAVEAT,
        work=f"{count(scores.steps, 'step')} in {duration(progress.seconds)}",
        repeated=repeated,
        recall=recall_by_search(questions),
        sentences=sentences_per_question(questions),
        questions=[_question(i, each, row) for i, (each, row) in enumerate(zip(questions, rows, strict=True), start=1)],
        paragraphs=_paragraphs(questions),
    )
    return RunPage(html=html, questions=len(questions))


def _metric(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if name == "paragraphs_collected" else f"{value:.1%}"


def _question(place: int, question: TracedQuestion, row: QuestionScores) -> ReportedQuestion:
    reason = question.reason
    return ReportedQuestion(
        number=place,
        key=question.key,
        text=question.text,
        status=question.status,
        answer=question.answer or ("(empty)" if question.status == QuestionStatus.FINISHED else ""),
        gold=" / ".join(question.answers),
        em=number(row.answer_em, 0),
        f1=number(row.answer_f1, 2),
        recall=number(row.support_recall, 2),
        right=row.answer_em == 1,
        missing=row.support_recall is not None and row.support_recall < 1,
        reason=f"{reason.type}: {reason.message}" if reason else "",
        steps=tuple(_step(step, question) for step in question.steps),
    )


def _step(step: TracedStep, question: TracedQuestion) -> ReportedStep:
    if step.failure:
        return ReportedStep(kind=step.kind, text=f"{step.failure.type}: {step.failure.message}", failed=True)
    if step.kind == "retrieve":
        new = [hit for hit in step.hits if hit.paragraph.digest in step.new]
        found = tuple(_hit(hit, question) for hit in new)
        return ReportedStep(kind="retrieve", text=step.query or "", found=found, known=len(step.hits) - len(found))
    written = step.generated
    if written is None:
        return ReportedStep(kind=step.kind, text="", note=step.state)
    took = "" if step.milliseconds is None else f", {duration(step.milliseconds / 1000)}"
    dropped = step.paragraphs - written.paragraphs
    left_out = f", {count(dropped, 'paragraph')} didn't fit the context" if dropped else ""
    note = f"{written.prompt_tokens:,} tokens read, {written.generated_tokens:,} written{took}{left_out}"
    return ReportedStep(kind=step.kind, text=written.text, note=note)


def _hit(hit: Hit, question: TracedQuestion) -> ReportedHit:
    return ReportedHit(
        title=hit.paragraph.title,
        snippet=cut(hit.paragraph.text, SNIPPET),
        anchor=_anchor(hit.paragraph),
        rank=hit.rank,
        score=f"{hit.score:.1f}",
        gold=is_gold(hit.paragraph, question.gold),
    )


def _paragraphs(questions: Sequence[TracedQuestion]) -> list[tuple[str, Paragraph]]:
    """Every collected paragraph once, by title."""
    collected = {_anchor(paragraph): paragraph for question in questions for paragraph in question.paragraphs}
    return sorted(collected.items(), key=lambda item: (item[1].title, item[0]))


def _anchor(paragraph: Paragraph) -> str:
    return f"p-{paragraph.digest}"
