"""`cotrail report`: a run as one HTML file that needs nothing else."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from cli.output import console, count, cut, duration, number
from cli.pages import page
from cli.plots import recall_by_search, sentences_per_question
from cli.scoring import is_gold, run_scores, scores_of
from cli.showing import configuration, local
from cli.store import RunName, reading
from cotrail.core.paragraphs import Hit, Paragraph
from cotrail.errors import InputError
from cotrail.evaluation.metrics.question_scores import CAVEAT, DEFINITIONS, QuestionScores
from models.queries.progress import count_repeated, read_progress, read_run, resolve_run
from models.queries.traces import TracedQuestion, TracedStep, read_questions
from models.schema.tables import QuestionStatus

SNIPPET = 190
"""How much of a paragraph stands beside a sentence; the whole is at the end of the report, once."""

TITLES = {
    "answer_em": "Exact match",
    "answer_f1": "Answer F1",
    "support_recall": "Gold paragraphs found",
    "paragraphs_collected": "Paragraphs collected",
}


class Found(Struct, frozen=True, kw_only=True):
    """A paragraph that a search added."""

    title: str
    snippet: str
    anchor: str
    rank: int
    score: str
    gold: bool


class Move(Struct, frozen=True, kw_only=True):
    """A step as the report shows it."""

    kind: str
    text: str
    found: tuple[Found, ...] = ()
    known: int = 0
    """How many of the hits were collected before, or left out."""
    note: str = ""
    failed: bool = False


class Entry(Struct, frozen=True, kw_only=True):
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
    moves: tuple[Move, ...]


def report(
    run: RunName,
    html: Annotated[Path, typer.Option("--html", metavar="PATH", help="The file to write.", show_default=False)],
) -> None:
    """Write a run as one HTML file: configuration, scores, and the reasoning behind every answer.

    The file needs no network and no script. Example: `cotrail report latest --html report.html`
    """
    asked = write_report(run, html)
    console().print(f"Wrote {html} with {count(asked, 'question')}.", soft_wrap=True)


def write_report(run: str, path: Path) -> int:
    """Writes the report; returns how many questions it holds."""
    with reading() as connection:
        record = read_run(connection, resolve_run(connection, run))
        progress = read_progress(connection, record.id)
        repeated = count_repeated(connection, record.id)
        questions = list(read_questions(connection, record.id))
    rows = [scores_of(record, question) for question in questions]
    scores = run_scores(record, progress, rows)
    text = page(
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
        entries=[_entry(i, each, row) for i, (each, row) in enumerate(zip(questions, rows, strict=True), start=1)],
        paragraphs=_paragraphs(questions),
    )
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); choose another --html") from error
    return len(questions)


def _metric(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if name == "paragraphs_collected" else f"{value:.1%}"


def _entry(place: int, question: TracedQuestion, row: QuestionScores) -> Entry:
    reason = question.reason
    return Entry(
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
        moves=tuple(_move(step, question) for step in question.steps),
    )


def _move(step: TracedStep, question: TracedQuestion) -> Move:
    if step.failure:
        return Move(kind=step.kind, text=f"{step.failure.type}: {step.failure.message}", failed=True)
    if step.kind == "retrieve":
        new = [hit for hit in step.hits if hit.paragraph.digest in step.new]
        found = tuple(_found(hit, question) for hit in new)
        return Move(kind="retrieve", text=step.query or "", found=found, known=len(step.hits) - len(found))
    written = step.generated
    if written is None:
        return Move(kind=step.kind, text="", note=step.state)
    took = "" if step.milliseconds is None else f", {duration(step.milliseconds / 1000)}"
    dropped = step.paragraphs - written.paragraphs
    left_out = f", {count(dropped, 'paragraph')} didn't fit the context" if dropped else ""
    note = f"{written.prompt_tokens:,} tokens read, {written.generated_tokens:,} written{took}{left_out}"
    return Move(kind=step.kind, text=written.text, note=note)


def _found(hit: Hit, question: TracedQuestion) -> Found:
    return Found(
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
