"""`cotrail demo`: everything on the bundled sample and this machine alone, from starting the stack to a report."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text
from sqlalchemy import Engine

from cotrail.cli.commands.start import SAMPLE, pasteable, print_commands
from cotrail.cli.request_options import option
from cotrail.cli.terminal.diagnosis import start, startable_stack
from cotrail.cli.terminal.following import growing_traces
from cotrail.cli.terminal.output import ENDING, console, grid, heading, write_text
from cotrail.cli.terminal.run_text import INCOMPLETE, closing_line, print_reasons
from cotrail.cli.terminal.verdict_tables import print_scores
from cotrail.common.humanize import count, duration, percent
from cotrail.configuration.settings import settings
from cotrail.services.library import corpora
from cotrail.services.results.experiment_reports import published_models, read_answers
from cotrail.services.results.reports.run_report import run_report
from cotrail.services.results.scoring import read_scores, score_sentence
from cotrail.services.runs import submission, watching
from cotrail.services.runs.progress import RunProgress, read_reasons
from cotrail.services.runs.requests import RunRequest, make_request, read_run_file
from cotrail.services.runs.watching import watch
from cotrail.services.store import open_store, reading, reading_from
from cotrail.viewer.page import link

if TYPE_CHECKING:
    from cotrail.workers.stack.stack import Stack

CORPUS = "demo"
"""A name of its own, since a corpus `sample` may be the user's."""

QUESTION_COUNT = 8
"""The number of the sample's questions that run without --all."""

REPORT = Path("cotrail-demo.html")

BUNDLED_MODEL = "smollm2-135m"


def demo(
    *, every: Annotated[bool, option("demo.all")] = False, keep: Annotated[bool, option("demo.keep")] = False
) -> None:
    """Show everything on the bundled sample: start the stack, index, ask, score, write a report, stop the stack.

    It has the folder, the servers and the model of every other command. A stack that is up already stays up. In a
    terminal, the run can be looked at in the browser until Ctrl-C.
    """
    stack = startable_stack()
    stays = keep or any(status.pid is not None for status in stack.status())
    screen = console()
    _introduce(screen)
    run = code = None
    with suppress(KeyboardInterrupt), _running(stack, screen, stays=stays), open_store() as engine:
        run = _submit(screen, engine, limit=None if every else QUESTION_COUNT)
        code = _demonstrate(screen, engine, run)
        _show_viewer(screen, f"{stack.kept_address().url}{link('runs', run)}", stays=stays)
    screen.print()
    if code is None:
        _print_interrupted(screen, run, stays=stays)
        raise typer.Abort
    _print_what_next(screen, run, stays=stays)
    raise typer.Exit(code)


def _introduce(screen: Console) -> None:
    if settings().model == BUNDLED_MODEL:
        reached = [
            f"{each.name} ({each.parameters:g} billion parameters) {percent(each.answer_f1)}"
            for each in published_models()
        ]
        screen.print(
            "Sentences are selected by the words that they share with the question, since SmolLM2, with 135 million "
            "parameters, is too small to write them, as IRCoT itself has it. The models of IRCoT's paper reach these "
            f"F1 on HotpotQA, whose questions are of this kind: {', '.join(reached)} (table 4).",
            style="yellow",
        )
        screen.print()
    screen.print(
        "No single paragraph answers these questions. IRCoT searches, writes one sentence of reasoning, searches with "
        "that sentence, and so on; here the sentence is one of those found. Each step is a task in a queue, recorded "
        "in PostgreSQL before the next one begins. The country in the sample is invented."
    )


@contextmanager
def _running(stack: "Stack", screen: Console, *, stays: bool) -> Iterator[None]:
    """The local stack, stopped afterwards unless it stays."""
    _part(screen, "Start the local stack", "PostgreSQL, Redis, a generation, a retrieval and a maintenance worker")
    try:
        start(stack, screen)
        screen.print(f"Running, with its state in {settings().home}.", soft_wrap=True)
        yield
    finally:
        if not stays:
            with _uninterrupted(), screen.status("stopping the stack…"):
                stack.down()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """A second Ctrl-C, or a signal that ends the command, doesn't leave half of the stack behind."""
    former = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *ENDING)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def sample_request(limit: int | None) -> RunRequest:
    """The request for the demo's run."""
    return make_request({**read_run_file(SAMPLE / "run.toml"), "corpus": CORPUS, "limit": limit})


def _submit(screen: Console, engine: Engine, limit: int | None) -> str:
    _part(screen, "Index the corpus", "as `cotrail index` does")
    indexed = corpora.index([SAMPLE / "corpus.jsonl"], CORPUS)
    screen.print(f"{count(indexed.paragraphs, 'paragraph')} in {duration(indexed.seconds)}.")
    _part(screen, "Submit the run", "as `cotrail submit` does")
    prepared = submission.prepare(sample_request(limit))
    submission.submit(engine, prepared)
    size = count(len(prepared.questions), "question")
    screen.print(f"{size} for {prepared.submission.model_name}, as run {prepared.submission.id}.", soft_wrap=True)
    return prepared.submission.id


def _demonstrate(screen: Console, engine: Engine, run: str) -> int:
    """Shows the run to its end, and what came of it; returns the exit code."""
    progress = _follow(screen, engine, run)
    _show_answers(screen, engine, run)
    _part(screen, "Scores", "as `cotrail score` prints them")
    with reading_from(engine) as connection:
        scores = read_scores(connection, run)
        screen.print(heading(score_sentence(scores)), soft_wrap=not screen.is_terminal)
        print_scores(screen, scores)
        print_reasons(screen, read_reasons(connection, run))
    _part(screen, "Report", "as `cotrail report` writes it")
    with reading() as connection:
        write_text(REPORT, run_report(connection, run).html, "run the demo in another folder")
    screen.print(f"Open {REPORT.absolute()} in a browser.", soft_wrap=True)
    return 0 if progress.complete else INCOMPLETE


def _follow(screen: Console, engine: Engine, run: str) -> RunProgress:
    _part(screen, "Let the workers work", "`+` marks the paragraphs that a search added, ★ those that are needed")
    with growing_traces(screen, engine, run) as show:
        progress = watch(run, watching.show_reading, show)
    screen.print(closing_line(progress), soft_wrap=True)
    return progress


def _show_viewer(screen: Console, address: str, *, stays: bool) -> None:
    """Names the run's page, and lets people at a terminal look at it until Ctrl-C where the stack is stopped then."""
    if not stays and not screen.is_terminal:
        return
    _part(screen, "Viewer", "as `cotrail view` opens it")
    screen.print(f"See why each answer came out: {address}", soft_wrap=True)
    if not stays:
        screen.print("Ctrl-C ends the demo and stops the stack.")
        signal.pause()


def _show_answers(screen: Console, engine: Engine, run: str) -> None:
    with reading_from(engine) as connection:
        answers = read_answers(connection, run)
    _part(screen, "Answers", f"{sum(each.right for each in answers)} of {len(answers)} are right")
    table = grid("dim", "", "bold", "")
    for place, each in enumerate(answers, start=1):
        mark = Text("right", style="green") if each.right else Text("wrong", style="red")
        table.add_row(f"{place}.", mark, each.answer, f"gold: {each.gold}")
    screen.print(table)


def _print_interrupted(screen: Console, run: str | None, *, stays: bool) -> None:
    if run is None:
        stack = f"The stack keeps running; to stop it: {pasteable('down')}" if stays else "The stack is stopped."
        screen.print(f"Interrupted before the run was submitted. {stack}", soft_wrap=True)
    elif stays:
        screen.print("Interrupted. The stack keeps running, and the workers continue the run. To see it, and to stop:")
        print_commands(screen, ("watch", run), ("down",))
    else:
        screen.print("Interrupted. The stack is stopped, and what the run has recorded is kept. To continue it:")
        print_commands(screen, ("up",), ("watch", run))


def _print_what_next(screen: Console, run: str | None, *, stays: bool) -> None:
    if stays:
        screen.print("The stack keeps running. To look further, and to stop it:")
        print_commands(screen, ("trace", str(run), "1"), ("down",))
    else:
        screen.print("The stack is stopped, and the run is kept. To look further:")
        print_commands(screen, ("up",), ("trace", str(run), "1"), ("down",))
    models = settings().catalogue_path
    screen.print(f"To ask a model of your own, name it in {models} (docs/models.md):", soft_wrap=True)
    screen.print(f"  COTRAIL_MODEL=NAME {pasteable('demo')}", soft_wrap=True)
    screen.print("To try documents and questions of your own:")
    print_commands(screen, ("start",))


def _part(screen: Console, title: str, explained: str) -> None:
    screen.print()
    screen.print(Text(title, style="bold cyan").append(f"  {explained}", style="not bold dim"))
