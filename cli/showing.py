"""`cotrail runs` and `cotrail show`: which runs there are, and one run's configuration and state."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from cli.output import Json, console, count, duration, grid, heading, print_json
from cli.provenance import INSTEAD
from cli.running import blockage_line, outage_line, print_reasons, summary
from cli.store import RunName, reading
from cotrail.common.short_digests import shortened
from models.queries.progress import (
    Progress,
    RunRecord,
    RunSummary,
    count_repeated,
    list_runs,
    read_progress,
    read_reasons,
    read_run,
    resolve_run,
)
from models.schema.tables import QuestionStatus


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
        reasons = read_reasons(connection, record.id)
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


def local(moment: datetime) -> str:
    """A time as the reader's clock shows it."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def configuration(record: RunRecord) -> Iterator[tuple[str, str]]:
    """What was run, as names and values for a reader."""
    yield "submitted", local(record.created_at)
    yield "priority", str(record.priority)
    if record.origin:
        yield "origin", f"{record.origin}, forked at {record.forked_at or 'the first step that differs'}"
    yield "system", f"{record.system}, version {record.system_version}"
    for name, value in flat(record.settings):
        yield f"  {name}", value
    yield "dataset", record.dataset
    for kind, file in record.provenance.get("files", {}).items():
        yield kind, str(file["path"])
    if record.corpus:
        yield "corpus", f"{record.corpus}, revision {shortened(record.corpus_revision)}"
    sampling = f"temperature {record.temperature:g}, seed {record.seed}"
    for source, revision in sorted(record.knowledge.items()):
        yield "knowledge", f"{source}, revision {shortened(revision)}"
    yield "model", f"{shortened(record.model)}, profile {record.profile}, {sampling}"
    for name in ("embedder", "entailer"):
        if identity := getattr(record, name):
            yield name, shortened(identity)
    for note in record.provenance.get(INSTEAD, ()):
        yield "instead", note
    yield "software", _software(record.provenance)
    yield "digest", record.digest or "none until all questions have ended"


def _software(provenance: dict[str, Any]) -> str:
    versions = [f"cotrail {provenance.get('cotrail')}", f"Python {provenance.get('python')}"]
    if git := provenance.get("git"):
        versions.append(f"git {shortened(git)}")
    return ", ".join(versions)


def flat(settings: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Settings as dotted names and values."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            shown = ", ".join(str(each).strip() for each in value) if isinstance(value, list | tuple) else str(value)
            yield f"{prefix}{name}", shown


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
        done = sum(each.questions.values()) - each.questions[QuestionStatus.OPEN]
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
    columns = (*states, "tokens read", "cached", "written", "ms a step")
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("steps")
    for name in columns:
        table.add_column(name, justify="right")
    for counts in progress.kinds:
        mean = counts.milliseconds / counts.finished if counts.finished else 0
        numbers = [getattr(counts, state) for state in states]
        tokens = (counts.prompt_tokens, counts.cached_prompt_tokens, counts.generated_tokens)
        shown = [f"{value:,}" if value else "-" for value in (*numbers, *tokens)]
        table.add_row(counts.kind, *shown, f"{mean:,.1f}")
    return table


def _effort(progress: Progress, repeated: dict[str, int]) -> str:
    again = ", ".join(f"{number} {outcome}" for outcome, number in repeated.items())
    said = f"; executions that didn't count: {again}" if again else ""
    return f"{count(progress.steps, 'step')} in {duration(progress.seconds)}{said}"


def _hint(screen: Console, run: str, progress: Progress) -> None:
    screen.print()
    following = {
        "running": f"`cotrail watch {run}` shows progress.",
        "paused": f"`cotrail resume {run}` goes on.",
        "blocked": f"Once the reason is mended, `cotrail resume {run}` goes on.",
        "finished": f"`cotrail score {run}` shows the scores, `cotrail trace {run} 1` the first question.",
    }
    if hint := following.get(progress.standing):
        screen.print(hint, soft_wrap=True)
