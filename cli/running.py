"""`cotrail watch`: a run's progress while workers carry it out."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from msgspec import Struct
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from cli.meanwhile import meanwhile
from cli.output import Json, console, count, duration, heading, print_json
from cli.store import RunName, open_store
from configuration.settings import settings
from cotrail.common.printable_text import one_line
from models.execution.blockage import Blockage
from models.queries.outages import Outage
from models.queries.progress import Progress, Reason, StepCounts, read_progress, read_reasons, resolve_run
from models.schema.database import reason_of, unanswered
from models.schema.tables import QuestionStatus, RunState
from tasks.routing import broker_problem

POLL_SECONDS = 0.5
LONGEST_PAUSE = 5.0
"""How long nobody looks at a run, however long a look takes."""

SLOW_SECONDS = 2.0
"""After how long it is said that a look takes long, and how often it is said again."""

LINE_SECONDS = 5.0
"""How often a line is printed where the output is no terminal."""

IDLE_SECONDS = 10.0
"""How long steps may wait, and nothing move, before it is said that no worker takes them."""

LOST_SECONDS = 1.0
"""How soon a database is asked again that doesn't answer."""

WINDOW_SECONDS = 30.0
"""What the rate is measured over."""

INCOMPLETE = 4
"""The exit code where questions ended without an answer."""


def watch(run: RunName, *, json: Json = False) -> None:
    """Show a run's progress until nothing more comes by itself, and what holds it back. Ctrl-C ends only the watching.

    Exits with 4 if questions failed, are blocked or were cancelled.
    """
    with open_store() as engine:
        with engine.connect() as connection:
            found = resolve_run(connection, run)
        progress = follow(engine, found, stderr=json)
        raise typer.Exit(summarize(engine, progress, json=json))


def follow(engine: Engine, run: str, *, stderr: bool = False) -> Progress:
    """Shows the run's progress until no question is open, or one cause blocks it; returns the last that was seen."""
    screen = console(stderr=stderr)
    pace = Pace(_broker_problem)
    try:
        with _display(screen) as show:
            for progress in _read_on(engine, run, pace, show):
                show(progress, pace)
                if not progress.open or progress.stopped:
                    break
        return progress
    except KeyboardInterrupt:
        screen.print(f"The run goes on. `cotrail watch {run}` shows it again.", soft_wrap=True)
        raise


def pause_after(seconds: float) -> float:
    """The pause after a look that took so long: a run that is slow to read is read less often, up to a bound."""
    return min(max(POLL_SECONDS, 10 * seconds), LONGEST_PAUSE)


def _broker_problem() -> str | None:
    problem = broker_problem(settings().broker)
    return None if problem is None else settings().secrets.hidden(problem)


def _read_on(engine: Engine, run: str, pace: "Pace", show: "Show") -> Iterator[Progress]:
    """The run's progress, again and again; the last that is known while the database doesn't answer."""
    progress = None

    def tell(seconds: float) -> None:
        pace.looking = seconds
        show(progress, pace)

    while True:
        started = time.monotonic()
        try:
            with meanwhile(tell, SLOW_SECONDS), engine.connect() as connection:
                progress = read_progress(connection, run)
            pace.note(progress, started)
        except SQLAlchemyError as error:
            if progress is None or not unanswered(error):
                raise
            pace.lost, pace.looking = reason_of(error), 0.0
        yield progress
        time.sleep(LOST_SECONDS if pace.lost else pause_after(time.monotonic() - started))


def summarize(engine: Engine, progress: Progress, *, json: bool) -> int:
    """Prints how a run ended and returns the exit code."""
    with engine.connect() as connection:
        reasons = read_reasons(connection, progress.run)
    complete = progress.questions[QuestionStatus.FINISHED] == progress.total
    if json:
        print_json(summary(progress))
    else:
        screen = console()
        screen.print(closing_line(progress), soft_wrap=True)
        print_reasons(screen, reasons)
        if progress.blockage:
            screen.print(blockage_line(progress.run, progress.blockage), soft_wrap=True)
        elif progress.questions[QuestionStatus.BLOCKED]:
            screen.print(f"Once that is mended, `cotrail resume {progress.run}` goes on.", soft_wrap=True)
    return 0 if complete else INCOMPLETE


def summary(progress: Progress) -> dict[str, Any]:
    """A run's progress as JSON."""
    return {
        "run": progress.run,
        "standing": progress.standing,
        "questions": progress.total,
        **progress.questions,
        "steps": progress.steps,
        "seconds": progress.seconds,
        "outages": progress.outages,
        "blockage": progress.blockage,
        **{name: progress.tokens(name) for name in ("prompt_tokens", "cached_prompt_tokens", "generated_tokens")},
    }


def closing_line(progress: Progress) -> str:
    """e.g. `r-1: 20 of 20 questions finished, 2 failed; 310 steps in 4 min 10 s.`."""
    others = [
        f"{number} {status}"
        for status, number in progress.questions.items()
        if number and status != QuestionStatus.FINISHED
    ]
    finished = f"{progress.questions[QuestionStatus.FINISHED]} of {count(progress.total, 'question')} finished"
    work = f"{count(progress.steps, 'step')} in {duration(progress.seconds)}"
    return f"{progress.run}: {', '.join([finished, *others])}; {work}."


def print_reasons(screen: Console, reasons: list[Reason]) -> None:
    """Prints why questions have no answer, a paragraph a reason."""
    for reason in reasons:
        screen.print()
        screen.print(heading(f"{count(reason.questions, 'question')} {reason.status}: {reason.type}"))
        screen.print(reason.message)
        more = ", …" if reason.questions > len(reason.examples) else ""
        screen.print(f"{', '.join(reason.examples)}{more}", style="dim")


class Seen(Struct, frozen=True):
    """How far the run was at a time of the process's own clock."""

    at: float
    steps: int


class Pace:
    """How fast a watched run is, and what it waits for.

    ask_broker: says why Redis doesn't answer; None where it does.
    lost: why the database doesn't answer, if so.
    looking: for how many seconds the look that is under way has taken, where that is long.
    """

    def __init__(self, ask_broker: Callable[[], str | None] = lambda: None) -> None:
        self.lost: str | None = None
        self.looking = 0.0
        self._ask_broker = ask_broker
        self._seen: deque[Seen] = deque()
        self._moved: dict[str, tuple[tuple[int, ...], float]] = {}
        self._now = 0.0

    def note(self, progress: Progress, now: float) -> None:
        """Takes in what was just read."""
        self._now, self.lost, self.looking = now, None, 0.0
        self._seen.append(Seen(now, progress.steps))
        while len(self._seen) > 2 and now - self._seen[0].at > WINDOW_SECONDS:
            self._seen.popleft()
        for counts in progress.kinds:
            state = (counts.due, counts.done, counts.running, counts.busy)
            if counts.kind not in self._moved or self._moved[counts.kind][0] != state:
                self._moved[counts.kind] = (state, now)

    @property
    def rate(self) -> float:
        """Steps a second, lately."""
        first, last = self._seen[0], self._seen[-1]
        return (last.steps - first.steps) / (last.at - first.at) if last.at > first.at else 0.0

    def idle(self, counts: StepCounts) -> float:
        """For how many seconds steps of this kind have waited with no worker taking any."""
        waiting = counts.due > 0 and not counts.running and not counts.busy
        return self._now - self._moved[counts.kind][1] if waiting else 0.0

    def left(self, progress: Progress) -> float | None:
        """The seconds that the rest will take if its questions are like the finished ones; None: can't say."""
        steps = expected_steps(progress)
        if steps is None or steps <= progress.steps or not self.rate:
            return None
        return (steps - progress.steps) / self.rate

    def waits_for(self, progress: Progress) -> str | None:
        """Why nothing seems to happen, if so."""
        if self.lost:
            return f"The database doesn't answer ({self.lost}): the workers wait for it, and so does this."
        if self.looking:
            return self.slowness
        if progress.standing == "paused":
            return f"Paused. `cotrail resume {progress.run}` goes on."
        if progress.state == RunState.CANCELLED:
            return f"It is being cancelled; if that was broken off, `cotrail cancel {progress.run}` goes on."
        if progress.blockage:
            return blockage_line(progress.run, progress.blockage)
        if progress.outages:
            return " ".join(outage_line(outage) for outage in progress.outages)
        for counts in progress.kinds:
            if (seconds := self.idle(counts)) > IDLE_SECONDS:
                return self._idleness(counts, seconds)
        blocked = progress.questions[QuestionStatus.BLOCKED]
        return f"{count(blocked, 'question')} blocked; `cotrail show {progress.run}` says why." if blocked else None

    @property
    def slowness(self) -> str:
        """That the look that is under way takes long."""
        return f"The database has been asked for {duration(self.looking)} and hasn't answered yet."

    def _idleness(self, counts: StepCounts, seconds: float) -> str:
        waits = f"{count(counts.due, f'{counts.kind} step')} {'waits' if counts.due == 1 else 'wait'}"
        if problem := self._ask_broker():
            return f"Redis doesn't answer ({problem}): {waits}, and workers go on when it is back."
        return (
            f"{waits}, and no worker has taken one for {duration(seconds)}. "
            "`cotrail stack` shows the workers, `cotrail up` starts those that are missing."
        )


def blockage_line(run: str, blockage: Blockage) -> str:
    """Why no further questions begin, and what to do."""
    return (
        f"Paused after {count(blockage.questions, 'question')} were blocked by {blockage.type}: "
        f"{blockage.message.rstrip('.')}. Mend it, then `cotrail resume {run}` goes on."
    )


def outage_line(outage: Outage) -> str:
    """What is away, since when, how much waits for it, and when it is tried again."""
    waiting = f"{count(outage.steps, 'step')} {'waits' if outage.steps == 1 else 'wait'}"
    trial = f"in {duration(outage.next_seconds)}" if outage.next_seconds else "due"
    return (
        f"{outage.what.capitalize()} doesn't answer ({outage.message}): "
        f"{waiting} for it since {outage.since.astimezone():%H:%M}, the next trial is {trial}."
    )


def expected_steps(progress: Progress) -> float | None:
    """How many steps the whole run may take, going by its finished questions."""
    finished = progress.questions[QuestionStatus.FINISHED]
    return progress.done_in_finished / finished * progress.total if finished else None


Show = Callable[[Progress | None, Pace], None]
"""Shows what is known of a run: None before the first look is done."""


@contextmanager
def _display(screen: Console) -> Iterator[Show]:
    """Bars on a terminal, and elsewhere a line now and then."""
    if not screen.is_terminal:
        yield _lines(screen)
        return
    with Live(console=screen, auto_refresh=False, transient=True) as live:
        yield lambda progress, pace: live.update(_bars(progress, pace), refresh=True)


def _lines(screen: Console) -> Show:
    printed, last = -LINE_SECONDS, ""

    def show(progress: Progress | None, pace: Pace) -> None:
        nonlocal printed, last
        now = time.monotonic()
        if (progress is None or progress.open) and now - printed < LINE_SECONDS:
            return
        printed, line = now, _line(progress, pace)
        if line != last:
            screen.print(line, soft_wrap=True)
        last = line

    return show


def _line(progress: Progress | None, pace: Pace) -> str:
    if progress is None:
        return pace.slowness
    done = f"{progress.total - progress.open}/{progress.total} questions, {count(progress.steps, 'step')}"
    if not progress.open:
        return done
    if waiting := pace.waits_for(progress):
        return f"{done}. {waiting}"
    left = pace.left(progress)
    return f"{done}, {pace.rate:.1f} steps/s" + ("" if left is None else f", about {duration(left)} left")


def _bars(progress: Progress | None, pace: Pace) -> RenderableType:
    if progress is None:
        return Text(pace.slowness, style="yellow")
    steps = expected_steps(progress)
    table = Table.grid(padding=(0, 2))
    done = progress.total - progress.open
    table.add_row("Questions", _bar(done, progress.total), f"{done} of {progress.total}")
    about = "" if steps is None else f" of about {max(round(steps), progress.steps):,}"
    table.add_row("Steps", _bar(progress.steps, steps), f"{progress.steps:,}{about}")
    read, cached, written = (
        progress.tokens(name) for name in ("prompt_tokens", "cached_prompt_tokens", "generated_tokens")
    )
    share = f" ({cached / read:.0%} from the cache)" if read else ""
    left = pace.left(progress)
    lines: list[RenderableType] = [
        Text(progress.run, style="bold"),
        table,
        Text(f"{read:,} tokens read{share}, {written:,} written", style="dim"),
        Text(f"{pace.rate:.1f} steps/s, {'time left not known' if left is None else f'{duration(left)} left'}"),
    ]
    if waiting := pace.waits_for(progress):
        lines.append(Text(one_line(waiting), style="yellow"))
    return Group(*lines)


def _bar(done: float, total: float | None) -> ProgressBar:
    return ProgressBar(total=max(total or 1, done, 1), completed=done if total else 0, width=40)
