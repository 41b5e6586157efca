"""Live display of a run while workers carry it out: bars on a terminal, lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from sqlalchemy import Engine

from cotrail.cli.terminal.output import console, heading
from cotrail.common.humanize import count, duration, percent, rate
from cotrail.common.printable_text import one_line
from cotrail.core.budgets import left
from cotrail.core.money import shown_dollars
from cotrail.core.views import View, WrittenText
from cotrail.errors import UnavailableError
from cotrail.services.results.steps import QuestionStatus, StepState, TracedQuestion, read_growing, shown_steps
from cotrail.services.runs import jobs, watching
from cotrail.services.runs.experiments import ExperimentProgress
from cotrail.services.runs.jobs import Job
from cotrail.services.runs.progress import RunProgress, partial_line
from cotrail.services.runs.speed import Show, WatchedRun
from cotrail.services.runs.watching import watch

T = TypeVar("T")

# A run's progress while workers carry it out, as bars and as lines.

LINE_SECONDS = 5.0
"""Interval between lines where the output is no terminal."""


def progress_lines(screen: Console) -> Show:
    """A line at intervals."""
    return at_intervals(screen, LINE_SECONDS, _line, lambda each: each.progress is not None and not each.progress.open)


def at_intervals(
    screen: Console, seconds: float, line: Callable[[T], str], is_over: Callable[[T], bool]
) -> Callable[[T], None]:
    """Prints a line that differs from the last one, and none before its time unless all is over."""
    printed, last = -seconds, ""

    def show(progress: T) -> None:
        nonlocal printed, last
        now = time.monotonic()
        if not is_over(progress) and now - printed < seconds:
            return
        printed, text = now, line(progress)
        if text != last:
            screen.print(text, soft_wrap=True)
        last = text

    return show


def _line(watched: WatchedRun) -> str:
    progress = watched.progress
    if progress is None:
        return watched.waits_for or ""
    done = f"{progress.done:,} of {count(progress.questions, 'question')} done, {count(progress.steps, 'step')}"
    if budget := left(progress.budgets.run, progress.consumed):
        done += f", left: {budget}"
    if spent := shown_dollars(progress.spent):
        done += f", {spent}"
    if not progress.open:
        return done
    if scores := partial_line(progress.scores):
        done += f", {scores}"
    return f"{done}. {watched.waits_for}" if watched.waits_for else f"{done}, {_pace(watched)}"


def _pace(watched: WatchedRun) -> str:
    left = watched.seconds_left
    return f"{rate(watched.rate)} steps/s" + ("" if left is None else f", about {duration(left)} left")


def progress_bars(watched: WatchedRun) -> RenderableType:
    """A bar of the questions and one of the steps, tokens, speed, and what holds the run back."""
    waiting = Text(one_line(watched.waits_for or ""), style="yellow")
    progress, steps = watched.progress, watched.expected_steps
    if progress is None:
        return waiting
    table = Table.grid(padding=(0, 2))
    table.add_row("Questions", _bar(progress.done, progress.questions), f"{progress.done:,} of {progress.questions:,}")
    open_end = steps is not None and progress.done < progress.questions
    about = f" of about {max(round(steps or 0), progress.steps):,}" if open_end else ""
    table.add_row("Steps", _bar(progress.steps, steps), f"{progress.steps:,}{about}")
    read, cached = progress.prompt_tokens, progress.cached_prompt_tokens
    share = f" ({percent(cached / read, 0)} from the cache)" if read else ""
    money = f"; {spent}" if (spent := shown_dollars(progress.spent)) else ""
    budget = left(progress.budgets.run, progress.consumed)
    return Group(
        Text(progress.run, style="bold"),
        table,
        Text(f"{count(read, 'token')} read{share}, {progress.generated_tokens:,} written{money}", style="dim"),
        *([Text(f"Budget left: {budget}", style="dim")] if budget else []),
        *([Text(partial_line(progress.scores))] if progress.scores else []),
        Text(_pace(watched)),
        *([waiting] if waiting else []),
    )


def _bar(done: float, total: float | None) -> ProgressBar:
    return ProgressBar(total=max(total or 1, done, 1), completed=done if total else 0, width=40)


# Traces of a run's questions while they grow: side by side on a terminal, a line for each step elsewhere.

Numbered = tuple[int, TracedQuestion]

INDENT = 3
BAR_LINES = 8
"""The lines of a terminal that are left for progress bars and what holds a run back."""


@contextmanager
def growing_traces(screen: Console, engine: Engine, run: str) -> Iterator[Show]:
    """Shows progress with the traces; on a terminal a question's trace is printed for good once it has ended."""
    if not screen.is_terminal:
        yield _step_by_step(screen, engine, run)
        return
    with Live(console=screen, auto_refresh=False, transient=True) as live:
        yield _side_by_side(live, engine, run)


def _side_by_side(live: Live, engine: Engine, run: str) -> Show:
    printed: set[str] = set()
    growing: list[Numbered] = []

    def show(watched: WatchedRun) -> None:
        if watched.answers:
            growing.clear()
            for number, question in enumerate(read_growing(engine, run), start=1):
                if question.status == QuestionStatus.OPEN and question.steps:
                    growing.append((number, question))
                elif question.status != QuestionStatus.OPEN and question.key not in printed:
                    printed.add(question.key)
                    live.console.print(_whole(number, question))
        live.update(Group(*_ends(growing, live.console.height - BAR_LINES), progress_bars(watched)), refresh=True)

    return show


def _step_by_step(screen: Console, engine: Engine, run: str) -> Show:
    show_progress = progress_lines(screen)
    printed: set[tuple[str, object]] = set()

    def show(watched: WatchedRun) -> None:
        for number, question in enumerate(read_growing(engine, run), start=1) if watched.answers else ():
            for part, lines in _parts(question):
                if (question.key, part) not in printed:
                    printed.add((question.key, part))
                    for line in lines:
                        screen.print(Text(f"{number}. ").append_text(line), soft_wrap=True)
        show_progress(watched)

    return show


def _ends(growing: list[Numbered], height: int) -> Iterator[RenderableType]:
    """The questions with the latest lines of their traces, as many as there is room for."""
    newest = growing[: max(1, height // 2)]
    each = max(1, height // max(1, len(newest)) - 1)
    for number, question in newest:
        yield _cut(heading(f"{number}. {question.text}"))
        for line in _lines(question)[-each:]:
            yield _cut(Text(" " * INDENT).append_text(line))
    if left := len(growing) - len(newest):
        yield Text(f"and {count(left, 'further question')}", style="dim")


def _cut(line: Text) -> Text:
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _whole(number: int, question: TracedQuestion) -> RenderableType:
    trace = Text("\n").join(_lines(question))
    return Group(heading(f"{number}. {question.text}"), Padding(trace, (0, 0, 1, INDENT), expand=False))


def _lines(question: TracedQuestion) -> list[Text]:
    return [line for _, lines in _parts(question) for line in lines]


def _parts(question: TracedQuestion) -> Iterator[tuple[object, list[Text]]]:
    """The lines of each step that is done, by its number, and those of the answer next to the gold one."""
    for step in shown_steps(question):
        if step.state == StepState.FINISHED:
            yield step.sequence, list(_step(step.view))
    if question.status != QuestionStatus.OPEN:
        answer = question.answer if question.status == QuestionStatus.FINISHED else f"none: {question.status}"
        gold = question.answers[0] if question.answers else "none"
        yield (
            "answer",
            [
                Text("answer ", style="dim").append(one_line(answer or "(empty)"), style="not dim bold"),
                Text("gold   ", style="dim").append(one_line(gold), style="not dim"),
            ],
        )


def _step(view: View) -> Iterator[Text]:
    """The titles that a search added, or the thought that the model wrote."""
    for hit in view.found:
        if hit.new:
            line = f"+ {'★' if hit.gold else ' '} {one_line(hit.paragraph.title)}"
            yield Text(line, style="yellow" if hit.gold else "dim")
    for part in view.parts:
        if isinstance(part, WrittenText) and part.role == "thought":
            yield Text(one_line(part.text), style="italic")


def follow(run: str, *, stderr: bool = False) -> RunProgress:
    """Shows a run's progress until no question is open or one cause blocks it; returns the last that was read.

    run: its id, the beginning of it, its name, or `latest`.
    """
    screen = console(stderr=stderr)
    state = "running"

    def show(watched: WatchedRun) -> None:
        nonlocal run, state
        if watched.progress:
            run, state = watched.progress.run, watched.progress.state
        draw(watched)

    try:
        with _display(screen) as draw:
            return watch(run, watching.show_reading, show, _broker_problem)
    except KeyboardInterrupt:
        screen.print(unwatched_line(run, state), soft_wrap=True)
        raise


def _broker_problem() -> str | None:
    try:
        return watching.show_broker().problem
    except UnavailableError:
        return None  # the next reading says so


def unwatched_line(run: str, state: str) -> str:
    """What becomes of a run that isn't watched any more."""
    following = {
        "running": f"The run continues. `cotrail watch {run}` shows it again.",
        "paused": f"The run stays paused. `cotrail resume {run}` continues it.",
        "blocked": f"The run stays blocked. Once the reason is fixed, `cotrail resume {run}` continues it.",
    }
    return following.get(state, f"The run is {state}. `cotrail show {run}` shows it.")


@contextmanager
def _display(screen: Console) -> Iterator[Show]:
    """Bars on a terminal; elsewhere a line at intervals."""
    if not screen.is_terminal:
        yield progress_lines(screen)
        return
    # Refreshed by hand, since only a new reading changes anything.
    with Live(console=screen, auto_refresh=False, transient=True) as live:
        yield lambda watched: live.update(progress_bars(watched), refresh=True)


POLL_SECONDS = 1.0


def follow_job(job: Job, show: Callable[[Job], None]) -> Job:
    """Ask for a job until it has ended, and return it as it is then; show: called each time."""
    try:
        while job.open:
            show(job)
            time.sleep(POLL_SECONDS)
            job = jobs.show_job(job.job)
    except KeyboardInterrupt:
        line = f"The job continues; `cotrail jobs cancel {job.job}` ends it."
        console(stderr=True).print(line, soft_wrap=True)
        raise
    show(job)
    return job


EXPERIMENT_LINE_SECONDS = 10.0
"""Interval between lines where the output is no terminal."""


@contextmanager
def display(screen: Console) -> Iterator[Callable[[ExperimentProgress], None]]:
    """Bars on a terminal; elsewhere a line at intervals."""
    if not screen.is_terminal:
        yield at_intervals(screen, EXPERIMENT_LINE_SECONDS, describe, lambda progress: progress.over)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TaskProgressColumn())
    with Progress(*columns, TimeElapsedColumn(), TextColumn("{task.fields[note]}"), console=screen) as bars:
        runs = bars.add_task("Runs", total=None, note="")
        questions = bars.add_task("Questions", total=None, note="")

        def show(progress: ExperimentProgress) -> None:
            bars.update(runs, completed=progress.done, total=progress.planned)
            note = f"{count(progress.steps, 'step')}, {progress.adopted:,} of them adopted"
            bars.update(questions, completed=progress.answered, total=progress.questions, note=note)

        yield show


def describe(progress: ExperimentProgress) -> str:
    """e.g. `12 of 36 runs done, 240 of 400 questions, 3,012 steps (1,400 adopted)`."""
    return (
        f"{progress.done} of {count(progress.planned, 'run')} done, {progress.answered:,} of "
        f"{count(progress.questions, 'question')} in those begun, {count(progress.steps, 'step')} "
        f"({progress.adopted:,} adopted)"
    )
