"""Estimates of runs on the terminal."""

from collections.abc import Iterator

from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.cli.terminal.output import console, print_json
from cotrail.common.humanize import count
from cotrail.core.money import dollars
from cotrail.services.runs.estimating import Estimate, EstimatedWork


def print_estimate(estimate: Estimate, *, json: bool) -> None:
    """Prints what a run may take and cost."""
    if json:
        print_json(estimate)
        return
    screen = console()
    asked = f"{count(estimate.questions, 'question')} of {estimate.dataset}"
    screen.print(f"{estimate.system} on {asked} with {estimate.model}", soft_wrap=True)
    named = {"at most": estimate.most, "by earlier runs": estimate.expected}
    if rows := [_row(name, work) for name, work in named.items() if work]:
        titles = [title for title in rows[0] if any(row[title] for row in rows)]
        columns = [Column(title=title, right=title != "estimate", whole=True) for title in titles]
        print_rows(screen, columns, [[row[title] for title in titles] for row in rows])
    for note in _notes(estimate):
        screen.print(note, style="dim", soft_wrap=True)


def _row(name: str, work: EstimatedWork) -> dict[str, str]:
    return {
        "estimate": name,
        "steps": f"{work.steps:,}",
        "model calls": f"{work.usage.calls:,}",
        "tokens read": f"{work.usage.input_tokens:,}",
        "written": f"{work.usage.output_tokens:,}",
        "cost": "" if work.dollars is None else dollars(work.dollars),
        "in batches": "" if work.batch_dollars is None else dollars(work.batch_dollars),
    }


def _notes(estimate: Estimate) -> Iterator[str]:
    if estimate.most is None:
        yield f"The settings of {estimate.system} set no limit to its steps."
    if measured := estimate.measured:
        whose = f" with {measured.model}" if measured.model else ", of any model"
        yield f"By {count(measured.questions, 'finished question')} of {count(measured.runs, 'earlier run')}{whose}."
    else:
        yield f"No earlier run of {estimate.system} on {estimate.dataset} has ended, so that nothing is measured."
    if estimate.price == "unknown":
        yield f"The price of {estimate.model} isn't known: give its table in models.toml a `price`."
    elif estimate.price:
        yield f"Prices: {estimate.price}."
    yield "Nothing was submitted."
