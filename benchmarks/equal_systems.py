"""Comparisons of equal systems by simulation: how many are called different, though none is.

`python -m benchmarks.equal_systems [--families N] [--output FILE]` draws systems that are equally good on questions of
different difficulty, and compares them as `cotrail compare` does: with the number of questions fixed beforehand, and
at every stop. A family of comparisons counts where any of its pairs is called different.
"""

import json
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy
import typer
from msgspec import Struct
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import machine
from cotrail.evaluation.comparison.differences import ALPHA, anytime_interval, fixed_differences

MEASURED = ("cotrail", "numpy", "scipy", "statsmodels")


class Case(Struct, frozen=True, kw_only=True):
    """What is simulated; partial: whether right answers have scores between 0 and 1, and not 1."""

    systems: int
    partial: bool


CASES = (Case(systems=2, partial=False), Case(systems=2, partial=True), Case(systems=5, partial=False))


def main(
    families: Annotated[int, typer.Option(help="Families of comparisons.")] = 1000,
    questions: Annotated[int, typer.Option(help="Questions of each system.")] = 200,
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Simulate each case; print of how many families a pair is called different."""
    measured = [_measured(case, families, questions) for case in CASES]
    table = Table("systems", "scores", "families", "different, fixed number", "different, at any stop")
    for each in measured:
        scores = "partial" if each["partial"] else "0 or 1"
        table.add_row(str(each["systems"]), scores, str(families), str(each["fixed"]), str(each["any_stop"]))
    Console().print(table)
    report = {
        "command": machine.command("benchmarks.equal_systems"),
        "questions": questions,
        "measured": measured,
        "machine": machine.describe(),
        "versions": machine.versions(*MEASURED),
    }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")


def _measured(case: Case, families: int, questions: int) -> dict[str, Any]:
    chance = numpy.random.default_rng(11)
    fixed = stopped = 0
    for _ in track(range(families), f"{case.systems} systems", transient=True):
        family = equal_systems(chance, case, questions)
        fixed += _called_different(family)
        level = 1 - ALPHA / len(family)
        # An interval is the intersection of all before it: the last one leaves 0 out if any did.
        intervals = (anytime_interval(each, 1.0, level) for each in family)
        stopped += any(interval is not None and interval.side for interval in intervals)
    return {"systems": case.systems, "partial": case.partial, "families": families, "fixed": fixed, "any_stop": stopped}


def _called_different(family: list[list[float]]) -> bool:
    return any(difference.shown for difference in fixed_differences(family, 1.0))


def equal_systems(chance: numpy.random.Generator, case: Case, questions: int) -> list[list[float]]:
    """The paired differences of all pairs of systems."""
    easy = chance.random(questions)
    right = (chance.random((case.systems, questions)) < easy).astype(float)
    scores = right * chance.choice([0.4, 0.5, 0.67, 0.8, 1.0], size=right.shape) if case.partial else right
    return [(one - other).tolist() for one, other in combinations(scores, 2)]


if __name__ == "__main__":
    typer.run(main)
