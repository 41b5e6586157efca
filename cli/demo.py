"""`cotrail demo`: everything on the bundled sample and this machine alone, from starting the stack to a report."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text
from sqlalchemy import Engine

from cli.files import write_text
from cli.following import follow
from cli.local_stack import startable_stack
from cli.output import console, heading
from cli.run_text import INCOMPLETE, closing_line, print_reasons
from cli.sample import SAMPLE
from cli.score import print_scores
from configuration.settings import settings
from cotrail.common.humanize import count, duration
from cotrail.common.printable_text import one_line
from cotrail.evaluation.metrics.question_scores import CAVEAT
from cotrail.evaluation.metrics.supporting_paragraphs import is_gold
from models.queries.progress import read_causes
from models.queries.traces import TracedQuestion, read_questions
from models.schema.states import QuestionStatus
from services import corpora, submission
from services.reports.run_report import run_report
from services.requests import RunRequest, make_request, read_run_file
from services.scoring import read_scores
from services.store import open_store, reading

if TYPE_CHECKING:
    from workers.stack.stack import Stack

CORPUS = "sample"
QUESTIONS = 8
"""The number of the sample's questions that run without --all."""

REPORT = Path("cotrail-demo.html")
HOME = Path(".cotrail")
"""The home of the demo's stack in the working directory, unless COTRAIL_HOME is set."""


def demo(
    *,
    every: Annotated[bool, typer.Option("--all", help="Ask all 32 questions instead of the first eight.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the stack running afterwards.")] = False,
) -> None:
    """Show everything on the bundled sample: start the stack, index, ask, score, write a report, stop the stack.

    Only this machine is used. State goes into `./.cotrail` unless COTRAIL_HOME is set.
    """
    os.environ.setdefault("COTRAIL_HOME", str(HOME.absolute()))
    settings.cache_clear()
    stack = startable_stack()
    screen = console()
    screen.print(
        "IRCoT answers questions that no single paragraph answers: it searches, writes one sentence of reasoning, "
        "searches with that sentence, and so on. Each step is a task in a queue, recorded in PostgreSQL before the "
        "next one begins. The country in the sample is invented."
    )
    with _running(stack, screen, keep=keep):
        code = _demonstrate(screen, limit=None if every else QUESTIONS)
    raise typer.Exit(code)


@contextmanager
def _running(stack: "Stack", screen: Console, *, keep: bool) -> Iterator[None]:
    """The local stack, stopped afterwards unless it was running before or `keep` is set."""
    ran = _runs(stack)
    _part(screen, "Start the local stack", "PostgreSQL, Redis, a generation, a retrieval and a maintenance worker")
    started = False
    try:
        with screen.status("starting…"):
            stack.up()
            stack.supervise()
        started = True
        screen.print(f"Running, with its state in {settings().home}.", soft_wrap=True)
        yield
    finally:
        if not (keep or ran):
            with screen.status("stopping the stack…"):
                stack.down()
        if started:
            _print_what_next(screen, runs=keep or ran)


def _print_what_next(screen: Console, *, runs: bool) -> None:
    home = shlex.quote(str(settings().home))
    screen.print()
    if runs:
        screen.print(f"The stack keeps running; to stop it: COTRAIL_HOME={home} cotrail down", soft_wrap=True)
        return
    screen.print("The stack is stopped, and the run is kept. To look further:")
    screen.print(f"  export COTRAIL_HOME={home}", soft_wrap=True)
    screen.print("  cotrail up && cotrail trace latest 1")
    screen.print("To start with files of your own: cotrail sample")


def _runs(stack: "Stack") -> bool:
    return any(status.pid is not None for status in stack.status())


def _demonstrate(screen: Console, *, limit: int | None) -> int:
    _part(screen, "Index the corpus", "as `cotrail index` does")
    indexed = corpora.index([SAMPLE / "corpus.jsonl"], CORPUS)
    screen.print(f"{count(indexed.paragraphs, 'paragraph')} in {duration(indexed.seconds)}.")
    with open_store() as engine:
        run = _submit(screen, engine, limit)
        _part(screen, "Let the workers work", "as `cotrail watch` shows it")
        progress = follow(engine, run)
        screen.print(closing_line(progress), soft_wrap=True)
        _show_answers(screen, engine, run)
        _part(screen, "Scores", "as `cotrail score` prints them")
        with engine.connect() as connection:
            print_scores(screen, read_scores(connection, run))
            screen.print(CAVEAT, style="dim")
            print_reasons(screen, read_causes(connection, run))
        screen.print("The bundled model is tiny (135 million parameters) and often wrong; the chains show where.")
    _part(screen, "Report", "as `cotrail report` writes it")
    with reading() as connection:
        write_text(REPORT, run_report(connection, run).html, "run the demo in another folder")
    screen.print(f"Open {REPORT.absolute()} in a browser.", soft_wrap=True)
    return 0 if progress.questions[QuestionStatus.FINISHED] == progress.total else INCOMPLETE


def sample_request(limit: int | None) -> RunRequest:
    """The request for the demo's run."""
    return make_request({**read_run_file(SAMPLE / "run.toml"), "limit": limit})


def _submit(screen: Console, engine: Engine, limit: int | None) -> str:
    _part(screen, "Submit the run", "as `cotrail submit` does")
    prepared = submission.prepare(sample_request(limit))
    submission.submit(engine, prepared)
    size = count(len(prepared.questions), "question")
    screen.print(f"{size} for {prepared.submission.model_name}, as run {prepared.submission.id}.", soft_wrap=True)
    return prepared.submission.id


def _show_answers(screen: Console, engine: Engine, run: str) -> None:
    _part(screen, "Answers", "`+` marks the paragraphs found before a sentence, ★ those that are needed")
    with engine.connect() as connection:
        for place, question in enumerate(read_questions(connection, run), start=1):
            screen.print()
            screen.print(heading(f"{place}. {question.text}"))
            screen.print(Padding(_reasoning(question), (0, 0, 0, 3)))


def _reasoning(question: TracedQuestion) -> Text:
    """The titles of what each search added, each sentence, and the answer beside the gold one."""
    text = Text()
    for step in question.steps:
        for hit in step.hits:
            if hit.paragraph.digest in step.new:
                mark = "★" if is_gold(hit.paragraph, question.gold) else " "
                text.append(f"+ {mark} {one_line(hit.paragraph.title)}\n", style="yellow" if mark == "★" else "dim")
        if step.kind == "reason" and step.generated:
            text.append(f"{step.generated.text}\n", style="italic")
    given = question.answer if question.status == QuestionStatus.FINISHED else f"none: {question.status}"
    text.append("answer ", style="dim").append(given or "(empty)", style="bold")
    return text.append("\ngold   ", style="dim").append(question.answers[0] if question.answers else "none")


def _part(screen: Console, title: str, explained: str) -> None:
    screen.print()
    screen.print(Text(title, style="bold cyan").append(f"  {explained}", style="not bold dim"))
