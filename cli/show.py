"""`cotrail runs` and `cotrail show`: the list of runs, and one run's configuration and state."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from cli.arguments import Json, RunName
from cli.output import console, grid, heading, print_json
from cli.run_text import blockage_line, outage_line, print_reasons, summary
from cotrail.common.humanize import count, duration
from models.queries.progress import Progress, count_repeated, read_causes, read_progress
from models.queries.runs import RunRecord, RunSummary, list_runs, read_run, resolve_run
from models.schema.states import QuestionStatus
from services.reports.configuration import configuration, local
from services.store import reading


def runs(*, json: Json = False) -> None:
    """List all runs, the newest first."""
    with reading() as connection:
        summaries = list_runs(connection)
    if json:
        print_json([_summary(each) for each in summaries])
    elif summaries:
        console().print(_runs(summaries))
    else:
        console().print("No runs yet. `cotrail submit --help` shows how to submit one.")


def show(run: RunName, *, json: Json = False) -> None:
    """Show a run: its configuration, where its questions and steps stand, and what went wrong."""
    with reading() as connection:
        record = read_run(connection, resolve_run(connection, run))
        progress = read_progress(connection, record.id)
        reasons = read_causes(connection, record.id)
        repeated = count_repeated(connection, record.id)
    if json:
        print_json(
            {
                **summary(progress),
                "kinds": progress.kinds,
                "repeated": repeated,
                "reasons": reasons,
                "configuration": record,
            }
        )
        return
    screen = console()
    screen.print(_title(record.id, progress.standing))
    screen.print(_configuration(record))
    screen.print()
    screen.print(heading("Questions"), ", ".join(_standings(progress)) or "none")
    screen.print()
    screen.print(_steps(progress))
    screen.print(_effort(progress, repeated), style="dim")
    if progress.blockage:
        screen.print(blockage_line(record.id, progress.blockage), style="yellow", soft_wrap=True)
    for outage in progress.outages:
        screen.print(outage_line(outage), style="yellow", soft_wrap=True)
    print_reasons(screen, reasons)
    _hint(screen, record.id, progress)


def _summary(each: RunSummary) -> dict[str, Any]:
    record = msgspec.to_builtins(each.run, builtin_types=(datetime,))
    brief = ("id", "created_at", "state", "priority", "system", "dataset", "corpus", "model")
    return {
        "run": record.pop("id"),
        "standing": each.standing,
        "total": sum(each.questions.values()),
        "questions": each.questions,
        **{name: record[name] for name in brief[1:]},
    }


def _runs(summaries: list[RunSummary]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("run", "submitted", "state", "priority", "questions", "dataset", "corpus", "model"):
        table.add_column(name, no_wrap=name == "run", overflow="fold", justify="left")
    for each in summaries:
        done = each.questions[QuestionStatus.FINISHED] + each.questions[QuestionStatus.FAILED]
        lost = each.questions[QuestionStatus.FAILED] + each.questions[QuestionStatus.BLOCKED]
        table.add_row(
            each.run.id,
            local(each.run.created_at),
            each.standing,
            str(each.run.priority),
            f"{done}/{sum(each.questions.values())}" + (f" ({lost} without answer)" if lost else ""),
            each.run.dataset,
            each.run.corpus or "-",
            each.run.model_name,
        )
    return table


def _title(run: str, standing: str) -> str:
    return f"{run} is {standing}"


def _configuration(record: RunRecord) -> Table:
    table = grid("dim", "")
    for name, value in configuration(record):
        table.add_row(name, value)
    return table


def _standings(progress: Progress) -> Iterator[str]:
    for status, number in progress.questions.items():
        if number:
            yield f"{number:,} {status}"


def _steps(progress: Progress) -> Table:
    states = ("finished", "failed", "running", "ready", "waiting", "blocked")
    columns = (*states, "tokens read", "cached", "written", "a step")
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("steps")
    for name in columns:
        table.add_column(name, justify="right")
    for counts in progress.kinds:
        mean = duration(counts.milliseconds / counts.finished / 1000) if counts.finished else "-"
        numbers = [getattr(counts, state) for state in states]
        tokens = (counts.prompt_tokens, counts.cached_prompt_tokens, counts.generated_tokens)
        shown = [f"{value:,}" if value else "-" for value in (*numbers, *tokens)]
        table.add_row(counts.kind, *shown, mean)
    return table


def _effort(progress: Progress, repeated: dict[str, int]) -> str:
    again = ", ".join(f"{number:,} {outcome}" for outcome, number in repeated.items())
    repeats = f"; executions that didn't count: {again}" if again else ""
    return f"{count(progress.steps, 'step')} in {duration(progress.seconds)}{repeats}"


def _hint(screen: Console, run: str, progress: Progress) -> None:
    screen.print()
    following = {
        "running": f"`cotrail watch {run}` shows progress.",
        "paused": f"`cotrail resume {run}` continues it.",
        "blocked": f"Once the reason is fixed, `cotrail resume {run}` continues it.",
        "finished": f"`cotrail score {run}` shows the scores, `cotrail trace {run} 1` the first question.",
    }
    if hint := following.get(progress.standing):
        screen.print(hint, soft_wrap=True)
