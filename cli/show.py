"""`cotrail runs` and `cotrail show`: the list of runs, and one run's configuration and state."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.columns import Cell, Column, print_rows
from cotrail.cli.output import console, grid, heading, print_json
from cotrail.cli.run_text import blockage_line, outage_line, print_reasons, shown_state, summary
from cotrail.common.humanize import count, duration
from cotrail.evaluation.experiments.costs import Cost, outcomes
from cotrail.models.queries.progress import Progress, read_causes, read_progress
from cotrail.models.queries.runs import RunRecord, RunSummary, read_run, resolve_run
from cotrail.models.records.labels import NO_LABELS, Labels, read_labels
from cotrail.models.schema.states import QuestionStatus, RunState
from cotrail.services.reports.configuration import configuration, local
from cotrail.services.reports.costs import adopted_from, run_cost
from cotrail.services.run_list import read_filter, read_page
from cotrail.services.store import reading

LIMIT = 20
"""The number of runs listed by default."""


def runs(
    *,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="KEY=VALUE",
            help="Only runs with this state, system, dataset, corpus, model, experiment, name or tag; or a text that "
            "their id, name or tags have. May be repeated: all have to hold.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most this many.")] = LIMIT,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="RUN", help="Those submitted before this run.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """List runs, the newest first.

    Example: `cotrail runs --filter state=finished --filter tag=baseline --limit 50`
    """
    wanted = [read_filter(each) for each in filters or ()]
    with reading() as connection:
        page = read_page(connection, wanted, limit=limit, after=after)
    if json:
        print_json([_summary(each) for each in page.runs])
    elif page.runs:
        _print_runs(page.runs)
    elif filters or after:
        console().print("No such runs. `cotrail runs` lists all.")
    else:
        console().print("No runs yet. `cotrail submit --help` shows how to submit one.")
    if page.more:
        rest = f"{count(page.more, 'more run')}: --limit, or --after {page.runs[-1].run.id}"
        console(stderr=True).print(rest, style="dim", soft_wrap=True)


def show(run: RunName, *, json: Json = False) -> None:
    """Show a run: its configuration, where its questions and steps stand, and what went wrong."""
    with reading() as connection:
        record = read_run(connection, resolve_run(connection, run))
        labels = read_labels(connection, [record.id]).get(record.id, NO_LABELS)
        progress = read_progress(connection, record.id)
        reasons = read_causes(connection, record.id)
        cost = run_cost(connection, record.id)
    if json:
        print_json(
            {
                **summary(progress),
                "kinds": progress.kinds,
                "cost": cost,
                "adopted_from": adopted_from(record),
                "reasons": reasons,
                "configuration": record,
                "name": labels.name,
                "tags": labels.tags,
            }
        )
        return
    screen = console()
    screen.print(_title(record.id, progress.state, labels))
    screen.print(_configuration(record))
    screen.print()
    screen.print(heading("Questions"), ", ".join(_question_counts(progress)) or "none")
    screen.print()
    _print_steps(screen, progress)
    _print_cost(screen, cost, adopted_from(record))
    screen.print(_effort(progress, cost), style="dim")
    if progress.blockage:
        screen.print(blockage_line(record.id, progress.blockage), style="yellow", soft_wrap=True)
    for outage in progress.outages:
        screen.print(outage_line(outage), style="yellow", soft_wrap=True)
    print_reasons(screen, reasons)
    _hint(screen, record.id, progress)


def _summary(each: RunSummary) -> dict[str, Any]:
    record = msgspec.to_builtins(each.run, builtin_types=(datetime,))
    brief = ("id", "created_at", "desired_state", "priority", "system", "dataset", "corpus", "model")
    return {
        "run": record.pop("id"),
        "name": each.labels.name,
        "tags": each.labels.tags,
        "state": each.state,
        "total": sum(each.questions.values()),
        "questions": each.questions,
        **{name: record[name] for name in brief[1:]},
    }


def _print_runs(summaries: Sequence[RunSummary]) -> None:
    """Prints a line for each run; labels and priorities only where there are any."""
    rows = [_row(each) for each in summaries]
    named = {name for row in rows for name, value in row.items() if value}
    shown = [name for name in rows[0] if name in named]
    columns = [Column(title=name, whole=name == "run") for name in shown]
    print_rows(console(), columns, [[row[name] for name in shown] for row in rows])


def _row(each: RunSummary) -> dict[str, Cell]:
    done = each.questions[QuestionStatus.FINISHED] + each.questions[QuestionStatus.FAILED]
    lost = each.questions[QuestionStatus.FAILED] + each.questions[QuestionStatus.BLOCKED]
    return {
        "run": each.run.id,
        "name": each.labels.name or "",
        "state": shown_state(each.state),
        "questions": f"{done}/{sum(each.questions.values())}" + (f" ({lost} without answer)" if lost else ""),
        "dataset": each.run.dataset,
        "corpus": ", ".join(each.run.corpora),
        "model": each.run.model_name,
        "tags": ", ".join(each.labels.tags),
        "priority": str(each.run.priority) if each.run.priority else "",
        "submitted": local(each.run.created_at),
    }


def _title(run: str, state: RunState, labels: Labels) -> Text:
    named = f" ({', '.join(filter(None, (labels.name, *labels.tags)))})" if labels != NO_LABELS else ""
    return Text(f"{run}{named} is ").append_text(shown_state(state))


def _configuration(record: RunRecord) -> Table:
    table = grid("dim", "")
    for name, value in configuration(record):
        table.add_row(name, value)
    return table


def _question_counts(progress: Progress) -> Iterator[str]:
    for status, number in progress.questions.items():
        if number:
            yield f"{number:,} {status}"


def _print_steps(screen: Console, progress: Progress) -> None:
    states = ("finished", "failed", "running", "ready", "waiting", "blocked")
    titles = ("done", *states[1:], "tokens read", "cached", "written")
    columns = [Column(title="steps"), *(Column(title=title, right=True) for title in titles)]
    columns.append(Column(title="a step", right=True, whole=True))
    rows = []
    for counts in progress.kinds:
        mean = duration(counts.milliseconds / counts.finished / 1000) if counts.finished else "-"
        numbers = [getattr(counts, state) for state in states]
        tokens = (counts.prompt_tokens, counts.cached_prompt_tokens, counts.generated_tokens)
        shown = [f"{value:,}" if value else "-" for value in (*numbers, *tokens)]
        rows.append([counts.kind, *shown, mean])
    print_rows(screen, columns, rows)


def _print_cost(screen: Console, cost: Cost, origin: str | None) -> None:
    """Prints what the run asked for and spent; the two are the same where it adopted nothing."""
    work = [("asked for", cost.asked), (f"adopted from {origin}", cost.adopted)] if cost.adopted.steps else []
    titles = ("model calls", "searches", "tokens read", "cached", "written")
    columns = [Column(title="work"), *(Column(title=title, right=True) for title in titles)]
    columns.append(Column(title="time of model calls", right=True, whole=True))
    rows: list[list[Cell]] = []
    for name, each in (*work, ("made", cost.made)):
        tokens = (each.prompt_tokens, each.cached_prompt_tokens, each.generated_tokens)
        numbers = [f"{number:,}" if number else "-" for number in (each.model_calls, each.searches, *tokens)]
        rows.append([name, *numbers, duration(each.model_seconds)])
    screen.print()
    print_rows(screen, columns, rows)


def _effort(progress: Progress, cost: Cost) -> str:
    lost = f"; executions without a result: {outcomes(cost.lost)}, {duration(cost.lost_seconds)}" if cost.lost else ""
    return f"{count(progress.steps, 'step')} in {duration(progress.seconds)}{lost}"


def _hint(screen: Console, run: str, progress: Progress) -> None:
    screen.print()
    following = {
        "running": f"`cotrail watch {run}` shows progress.",
        "paused": f"`cotrail resume {run}` continues it.",
        "blocked": f"Once the reason is fixed, `cotrail resume {run}` continues it.",
        "finished": f"`cotrail score {run}` shows the scores, `cotrail trace {run} 1` the first question.",
    }
    if hint := following.get(progress.state):
        screen.print(hint, soft_wrap=True)
