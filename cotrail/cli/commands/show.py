"""`cotrail runs` and `cotrail show`: the list of runs, and one run's configuration and state."""

from collections.abc import Sequence
from typing import Annotated

from rich.console import Console
from rich.text import Text

from cotrail.cli.request_options import Json, RunName, option
from cotrail.cli.terminal.output import Cell, console, grid, heading, in_json, print_json, print_rows, titled
from cotrail.cli.terminal.run_text import print_reasons, shown_state
from cotrail.common.humanize import count, duration, moment
from cotrail.core.budgets import left
from cotrail.core.history import shown_ends
from cotrail.core.money import spent_line
from cotrail.services.results import runs as operations
from cotrail.services.results.reports.reported_runs import configuration
from cotrail.services.results.runs import ListedRun, RunDetails
from cotrail.services.runs.scores import lost_requests_line, outcomes
from cotrail.services.runs.speed import blockage_line, outage_line

LIMIT = 20
"""The number of runs listed by default."""


def runs(
    *,
    filters: Annotated[list[str] | None, option("runs.filter")] = None,
    limit: Annotated[int, option("runs.limit")] = LIMIT,
    after: Annotated[str | None, option("runs.after")] = None,
    json: Json = False,
) -> None:
    """List runs, the newest first.

    Example: `cotrail runs --filter state=finished --filter tag=baseline --limit 50`
    """
    page = operations.show_runs(filters or (), limit=limit, after=after)
    if json:
        print_json(page.runs)
    elif page.runs:
        _print_runs(page.runs)
    elif filters or after:
        console().print("No such runs. `cotrail runs` lists all.")
    else:
        console().print("No runs yet. `cotrail submit --help` shows how to submit one.")
    if page.more:
        rest = f"{count(page.more, 'more run')}: --limit, or --after {page.runs[-1].run}"
        console(stderr=True).print(rest, style="dim", soft_wrap=True)


def show(run: RunName, *, json: Json = False) -> None:
    """Show a run: its configuration, where its questions and steps stand, and what went wrong."""
    details = operations.show_run(run)
    if in_json(details, json=json):
        return
    screen = console()
    screen.print(_title(details))
    table = grid("dim", "")
    for name, value in configuration(details.configuration):
        table.add_row(name, value)
    screen.print(table)
    screen.print()
    counts = ", ".join(f"{number:,} {status}" for status, number in details.statuses.items())
    screen.print(heading("Questions"), counts or "none")
    if details.ends:
        screen.print(heading("Ended by"), shown_ends(details.ends))
    screen.print()
    _print_steps(screen, details)
    _print_cost(screen, details)
    screen.print(_effort(details), style="dim")
    if details.blockage:
        screen.print(blockage_line(details.run, details.blockage), style="yellow", soft_wrap=True)
    for outage in details.outages:
        screen.print(outage_line(outage), style="yellow", soft_wrap=True)
    print_reasons(screen, details.reasons)
    _hint(screen, details)


def _print_runs(runs: Sequence[ListedRun]) -> None:
    """Prints a line for each run; labels and priorities only where there are any."""
    rows = [_row(each) for each in runs]
    filled = {name for row in rows for name, value in row.items() if value}
    names = [name for name in rows[0] if name in filled]
    columns = titled(*names, whole=("run",))
    print_rows(console(), columns, [[row[name] for name in names] for row in rows])


def _row(each: ListedRun) -> dict[str, Cell]:
    unanswered = f" ({each.unanswered} without answer)" if each.unanswered else ""
    return {
        "run": each.run,
        "name": each.name or "",
        "state": shown_state(each.state),
        "questions": f"{each.done}/{each.total}{unanswered}",
        "dataset": each.dataset,
        "corpus": ", ".join(each.corpora),
        "model": each.model_name,
        "repeat": f"{each.repeat.number}/{each.repeat.times}" if each.repeat else "",
        "tags": ", ".join(each.tags),
        "priority": str(each.priority) if each.priority else "",
        "submitted": moment(each.created_at),
    }


def _title(details: RunDetails) -> Text:
    labels = [*([details.name] if details.name else []), *details.tags]
    suffix = f" ({', '.join(labels)})" if labels else ""
    return Text(f"{details.run}{suffix} is ").append_text(shown_state(details.state))


def _print_steps(screen: Console, details: RunDetails) -> None:
    states = ("finished", "failed", "running", "ready", "waiting", "blocked")
    titles = ("done", *states[1:], "tokens read", "cached", "written", "each computed in")
    columns = titled("steps", *titles, right=titles, whole=titles[-1:])
    rows = []
    for counts in details.kinds:
        mean = duration(counts.milliseconds / counts.finished / 1000) if counts.finished else "-"
        numbers = [getattr(counts, state) for state in states]
        tokens = (counts.prompt_tokens, counts.cached_prompt_tokens, counts.generated_tokens)
        figures = [f"{value:,}" if value else "-" for value in (*numbers, *tokens)]
        rows.append([counts.kind, *figures, mean])
    print_rows(screen, columns, rows)


def _print_cost(screen: Console, details: RunDetails) -> None:
    """Prints what the run asked for and spent; the two are the same where it adopted nothing."""
    cost, adopted = details.cost, f"adopted from {details.adopted_from}"
    work = [("asked for", cost.asked), (adopted, cost.adopted)] if cost.adopted.steps else []
    titles = ("model calls", "searches", "tokens read", "cached", "written", "model calls computed in")
    columns = titled("work", *titles, right=titles, whole=titles[-1:])
    rows: list[list[Cell]] = []
    for name, each in (*work, ("made", cost.made)):
        tokens = (each.prompt_tokens, each.cached_prompt_tokens, each.generated_tokens)
        numbers = [f"{number:,}" if number else "-" for number in (each.model_calls, each.searches, *tokens)]
        rows.append([name, *numbers, duration(each.model_seconds)])
    screen.print()
    print_rows(screen, columns, rows)
    if spent_text := spent_line(cost.spent):
        screen.print(f"{spent_text}.")
    if lost := lost_requests_line(details.cost):
        screen.print(lost)
    if budget := left(details.budgets.run, details.consumed):
        screen.print(f"Budget left: {budget}.")


def _effort(details: RunDetails) -> str:
    cost = details.cost
    losses = (
        f"; executions without a result: {outcomes(cost.lost)}, claimed for {duration(cost.lost_seconds)}"
        if cost.lost
        else ""
    )
    return f"{count(details.steps, 'step')} in {duration(details.seconds)}{losses}"


def _hint(screen: Console, details: RunDetails) -> None:
    run = details.run
    screen.print()
    following = {
        "running": f"`cotrail watch {run}` shows progress.",
        "paused": f"`cotrail resume {run}` continues it.",
        "blocked": f"Once the reason is fixed, `cotrail resume {run}` continues it.",
        "finished": f"`cotrail score {run}` shows the scores, `cotrail trace {run} 1` the first question.",
    }
    if hint := following.get(details.state):
        screen.print(hint, soft_wrap=True)
