"""Command line of the chaos suite: `python -m tests.chaos --seed N --faults 200` prints each fault, then a table."""

import argparse
import secrets
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from tests.chaos.beside import search_of
from tests.chaos.schedule import schedule
from tests.chaos.suite import Report, Struck, suite

SEEDS = 1_000_000


def main() -> None:
    """Exits with 1 if anything is wrong at the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="A real stack under faults.")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(SEEDS), help="which schedule; else a new one")
    parser.add_argument("--faults", type=int, default=200, help="how many faults")
    parser.add_argument("--list", action="store_true", help="print the schedule and do nothing")
    parser.add_argument("--output", type=Path, help="a JSON file for the report")
    arguments = parser.parse_args()
    console, faults = Console(highlight=False), schedule(arguments.seed, arguments.faults)
    search = search_of(arguments.seed)
    console.print(f"seed {arguments.seed}, {arguments.faults} faults, the corpus in {search or 'a folder'}")
    if arguments.list:
        console.print(*faults, sep="\n")
        return
    report = suite(faults, console.print, search)
    _show(console, report)
    if arguments.output:
        written = {"seed": arguments.seed, "faults": arguments.faults, "search": search} | msgspec.to_builtins(report)
        arguments.output.write_bytes(msgspec.json.format(msgspec.json.encode(written), indent=1))
    if report.wrong:
        console.print(*report.wrong, sep="\n", style="red", markup=False)
        console.print(f"python -m tests.chaos --seed {arguments.seed} --faults {arguments.faults} does it again")
        sys.exit(1)


def _show(console: Console, report: Report) -> None:
    console.print(_table(report.struck))
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(report.attempts.items()))
    runs = ", ".join(f"{count} {system}" for system, count in sorted(report.runs.items()))
    console.print(
        f"runs: {runs}; {report.questions} questions, {report.steps} steps; {report.executions} executions; "
        f"attempts: {outcomes}\n"
        f"{report.seconds:.0f} s, of which the last {report.finishing_seconds:.0f} s without faults; "
        f"{report.failed_submissions} submissions and {len(report.failed_ups)} `cotrail up` failed under faults\n"
        f"{len(report.wrong) or 'nothing'} wrong"
    )


def _table(struck: list[Struck]) -> Table:
    """Per kind and victim: how often it struck, and the time from its mending to the next finished step."""
    table = Table("fault", "victim", "times", "recovery, median (s)", "longest (s)", box=None)
    by_kind = defaultdict(list)
    for each in struck:
        by_kind[str(each.fault.kind), each.fault.target].append(each.recovery)
    for (kind, target), recoveries in sorted(by_kind.items()):
        known = [recovery for recovery in recoveries if recovery is not None]
        times = (f"{statistics.median(known):.1f}", f"{max(known):.1f}") if known else ("", "")
        table.add_row(kind, target, str(len(recoveries)), *times)
    return table


if __name__ == "__main__":
    main()
