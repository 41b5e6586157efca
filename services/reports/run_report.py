"""Report of a run: one HTML page with its configuration, scores, and the reasoning behind every answer."""

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec import Struct
from sqlalchemy import Connection

from cotrail.common.humanize import count, cut, duration, number
from cotrail.core.actions.extract import EXTRACT
from cotrail.core.actions.open import OPEN
from cotrail.core.actions.retrieve import RETRIEVE
from cotrail.core.paragraphs import Hit, Paragraph
from cotrail.evaluation.metrics.question_scores import CAVEAT, COUNTS, DEFINITIONS, QuestionScores
from cotrail.evaluation.metrics.supporting_paragraphs import is_gold
from cotrail.systems.searchain.tree import Tree
from models.queries.progress import count_repeated, read_progress
from models.queries.runs import RunRecord, read_run, resolve_run
from models.queries.traces import TracedQuestion, TracedStep, read_questions
from models.schema.states import QuestionStatus
from services.answer_details import details_of
from services.kind_tables import kind_tables
from services.reasoning_trees import ShownTree, shown_tree
from services.reports.charts import recall_by_search, sentences_per_question
from services.reports.configuration import configuration, local
from services.reports.pages import page
from services.scoring import RunScores, kinded_scores, run_scores

SNIPPET = 190
"""Characters of a paragraph beside a sentence; each whole paragraph is at the end of the page, once."""

TITLES = {
    "answer_em": "Exact match",
    "answer_f1": "Answer F1",
    "cover_em": "Cover EM",
    "support_recall": "Gold paragraphs found",
    "paragraphs_collected": "Paragraphs collected",
}
LONG_ANSWERS = {"rouge_l": "ROUGE-L"}
"""Shown in addition where answers are long."""


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
    cover: str
    f1: str
    recall: str
    right: bool
    missing: bool
    reason: str
    steps: tuple[ReportedStep, ...]
    reasoning: ShownTree | None


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
    scored = [kinded_scores(question, record.dataset) for question in questions]
    scores = run_scores(record, progress, scored)
    paragraphs = _paragraphs(questions)
    titles = TITLES if scores.metrics["rouge_l"] is None else {**LONG_ANSWERS, **TITLES}
    html = page(
        "report.html",
        run=record,
        standing=progress.standing,
        submitted=local(record.created_at),
        written=f"{datetime.now():%Y-%m-%d %H:%M}",
        configuration=list(configuration(record)),
        scores=scores,
        metrics=[
            (title, _metric(name, scores.metrics[name]), DEFINITIONS[name], _interval(name, scores))
            for name, title in titles.items()
        ],
        caveat=CAVEAT,
        tables=tuple(kind_tables(scores)),
        titles=TITLES | LONG_ANSWERS,
        percent=_percent,
        work=f"{count(scores.steps, 'step')} in {duration(progress.seconds)}",
        repeated=repeated,
        recall=recall_by_search(questions),
        sentences=sentences_per_question(questions),
        questions=[
            _question(record, i, question, of.scores)
            for i, (question, of) in enumerate(zip(questions, scored, strict=True), start=1)
        ],
        paragraphs=paragraphs,
        anchors=frozenset(anchor for anchor, _ in paragraphs),
    )
    return RunPage(html=html, questions=len(questions))


def _metric(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if name in COUNTS else _percent(value)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _interval(name: str, scores: RunScores) -> str:
    interval = scores.intervals[name]
    return "" if interval is None else f"{_metric(name, interval.low)} to {_metric(name, interval.high)}"


def _question(record: RunRecord, place: int, question: TracedQuestion, row: QuestionScores) -> ReportedQuestion:
    reason, reasoning = question.reason, _reasoning(record, question)
    # The final content of a tree has the answer among other words.
    agreement = row.cover_em if reasoning else row.answer_em
    return ReportedQuestion(
        number=place,
        key=question.key,
        text=question.text,
        status=question.status,
        answer=question.answer or ("(empty)" if question.status == QuestionStatus.FINISHED else ""),
        gold=" / ".join(question.answers),
        em=number(row.answer_em, 0),
        cover=number(row.cover_em, 0),
        f1=number(row.answer_f1, 2),
        recall=number(row.support_recall, 2),
        right=agreement == 1,
        missing=row.support_recall is not None and row.support_recall < 1,
        reason=f"{reason.type}: {reason.message}" if reason else "",
        steps=tuple(_step(step, question) for step in question.steps),
        reasoning=reasoning,
    )


def _reasoning(record: RunRecord, question: TracedQuestion) -> ShownTree | None:
    """The tree of reasoning of an answer that has one."""
    details = details_of(record, question)
    titles = {hit.paragraph.digest: hit.paragraph.title for step in question.steps for hit in step.hits}
    return shown_tree(details, titles) if isinstance(details, Tree) else None


def _step(step: TracedStep, question: TracedQuestion) -> ReportedStep:
    if step.failure:
        return ReportedStep(kind=step.kind, text=f"{step.failure.type}: {step.failure.message}", failed=True)
    if step.kind in (RETRIEVE.name, OPEN.name):
        new = [hit for hit in step.hits if hit.paragraph.digest in step.new]
        found = tuple(_hit(hit, question) for hit in new)
        return ReportedStep(kind=step.kind, text=step.query or "", found=found, known=len(step.hits) - len(found))
    if step.kind == EXTRACT.name and step.result is not None:
        note = f"confidence {step.result['confidence']:.2f}"
        return ReportedStep(kind=step.kind, text=step.result["text"] or "no answer", note=note)
    written = step.generated
    if written is None:
        result = "" if step.result is None else msgspec.json.encode(step.result).decode()
        return ReportedStep(kind=step.kind, text="", note=result or step.state)
    took = "" if step.milliseconds is None else f", {duration(step.milliseconds / 1000)}"
    left_out = f", {count(step.left_out, 'paragraph')} didn't fit the context" if step.left_out else ""
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
