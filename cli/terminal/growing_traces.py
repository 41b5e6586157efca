"""Traces of a run's questions while they grow: side by side on a terminal, a line for each step elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.text import Text
from sqlalchemy import Engine

from cotrail.cli.terminal.output import heading
from cotrail.cli.terminal.progress_display import progress_bars, progress_lines
from cotrail.common.humanize import count
from cotrail.common.printable_text import one_line
from cotrail.core.views import View, WrittenText
from cotrail.services.runs.run_speed import Show, WatchedRun
from cotrail.services.views.shown_steps import shown_steps
from cotrail.services.views.tracing import QuestionStatus, StepState, TracedQuestion, read_growing

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
    """The lines of each step that is done, by its number, and those of the answer beside the gold one."""
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
