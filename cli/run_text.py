"""Words and numbers for a run's progress: how it ended, and what holds it back."""

from typing import Any

from rich.console import Console
from rich.text import Text
from sqlalchemy import Engine

from cotrail.cli.output import console, heading, print_json
from cotrail.common.humanize import count, duration
from cotrail.common.printable_text import cut
from cotrail.models.queries.outages import Outage
from cotrail.models.queries.progress import Cause, Progress, read_causes
from cotrail.models.records.blockage import Blockage
from cotrail.models.records.labels import namesakes
from cotrail.models.schema.states import QuestionStatus, RunState

STYLES = {
    RunState.RUNNING: "cyan",
    RunState.PAUSED: "yellow",
    RunState.BLOCKED: "bold red",
    RunState.FINISHED: "green",
    RunState.CANCELLED: "dim",
    RunState.PRUNED: "dim",
}
"""The colours of runs' states on a terminal."""

INCOMPLETE = 4
"""The exit code where questions ended without an answer."""


def shown_state(state: RunState) -> Text:
    """A run's state in its colour."""
    return Text(state, style=STYLES[state])


def summarize(engine: Engine, progress: Progress, *, json: bool) -> int:
    """Prints a run's outcome and returns the exit code."""
    with engine.connect() as connection:
        reasons = read_causes(connection, progress.run)
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
            screen.print(f"Once that is fixed, `cotrail resume {progress.run}` continues.", soft_wrap=True)
    return 0 if complete else INCOMPLETE


def summary(progress: Progress) -> dict[str, Any]:
    """A run's progress as JSON."""
    return {
        "run": progress.run,
        "state": progress.state,
        "questions": progress.total,
        **progress.questions,
        "steps": progress.steps,
        "seconds": progress.seconds,
        "outages": progress.outages,
        "blockage": progress.blockage,
        **{name: progress.tokens(name) for name in ("prompt_tokens", "cached_prompt_tokens", "generated_tokens")},
    }


def warn_of_namesakes(engine: Engine, run: str, name: str | None) -> None:
    """Says where a name that a run has just got no longer finds one run."""
    if not name:
        return
    with engine.connect() as connection:
        others = namesakes(connection, run, name)
    if others:
        said = f"{count(len(others), 'other run')} named {name!r} ({cut(', '.join(others), 100)}): give ids instead"
        console(stderr=True).print(said, style="yellow", soft_wrap=True)


def closing_line(progress: Progress) -> str:
    """e.g. `r-1: 20 of 20 questions finished, 2 failed; 310 steps in 4 min 10 s.`."""
    others = [
        f"{number:,} {status}"
        for status, number in progress.questions.items()
        if number and status != QuestionStatus.FINISHED
    ]
    finished = f"{progress.questions[QuestionStatus.FINISHED]:,} of {count(progress.total, 'question')} finished"
    work = f"{count(progress.steps, 'step')} in {duration(progress.seconds)}"
    return f"{progress.run}: {', '.join([finished, *others])}; {work}."


def print_reasons(screen: Console, reasons: list[Cause]) -> None:
    """Prints the reasons why questions have no answer, a paragraph each."""
    for reason in reasons:
        screen.print()
        screen.print(heading(f"{count(reason.questions, 'question')} {reason.status}: {reason.type}"))
        screen.print(reason.message)
        more = ", …" if reason.questions > len(reason.examples) else ""
        screen.print(f"{', '.join(reason.examples)}{more}", style="dim")


def blockage_line(run: str, blockage: Blockage) -> str:
    """One line on the cause that pauses a run, and what to do."""
    were = "was" if blockage.questions == 1 else "were"
    return (
        f"Paused after {count(blockage.questions, 'question')} {were} blocked by {blockage.type}: "
        f"{blockage.message.rstrip('.')}. Fix it, then `cotrail resume {run}` continues."
    )


def unwatched_line(run: str, state: str) -> str:
    """What becomes of a run that isn't watched any more."""
    following = {
        "running": f"The run continues. `cotrail watch {run}` shows it again.",
        "paused": f"The run stays paused. `cotrail resume {run}` continues it.",
        "blocked": f"The run stays blocked. Once the reason is fixed, `cotrail resume {run}` continues it.",
    }
    return following.get(state, f"The run is {state}. `cotrail show {run}` shows it.")


def outage_line(outage: Outage) -> str:
    """One line on an outage: what doesn't answer, since when, how much waits, and when it is tried again."""
    waiting = f"{count(outage.steps, 'step')} {'waits' if outage.steps == 1 else 'wait'}"
    trial = f"in {duration(outage.next_seconds)}" if outage.next_seconds else "due"
    return (
        f"{outage.what.capitalize()} doesn't answer ({outage.message}): "
        f"{waiting} for it since {outage.since.astimezone():%H:%M}, the next trial is {trial}."
    )
