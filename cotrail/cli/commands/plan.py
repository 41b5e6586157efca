"""`cotrail plan`: what was planned of a run before it began, and where the run departed from it."""

from collections.abc import Sequence

from rich.console import Console

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.terminal.output import console, grid, heading, print_json
from cotrail.services.results import plans
from cotrail.services.results.plans import RunPlan, planned


def plan(run: RunName, *, json: Json = False) -> None:
    """Show a run's plan, sealed before its first step, and where the run departed from it.

    Its digest, published before results are known, shows later that they didn't decide what was asked and reported.
    """
    described = plans.show_plan(run)
    if json:
        print_json(described)
        return
    _print_plan(console(), described)


def _print_plan(screen: Console, described: RunPlan) -> None:
    screen.print(f"{described.run}: plan {described.digest or 'none'}", soft_wrap=True)
    table = grid("dim", "")
    for name, value in planned(described):
        table.add_row(name, value)
    screen.print(table)
    if described.plan is None:
        return
    for title, texts in (("Deviations", described.deviations or ("none",)), ("Remarks", described.remarks)):
        _print_list(screen, title, texts)


def _print_list(screen: Console, title: str, texts: Sequence[str]) -> None:
    if texts:
        screen.print()
        screen.print(heading(title))
    for text in texts:
        screen.print(f"  {text}", soft_wrap=True)
