"""Judges beside people's labels, in tables."""

from rich.console import Console

from cotrail.cli.terminal.columns import Cell, Column, print_rows
from cotrail.cli.terminal.output import heading
from cotrail.cli.terminal.verdict_tables import share_cells
from cotrail.common.humanize import count, number
from cotrail.services.views.calibrating import Calibration, RunCalibration


def print_calibration(screen: Console, found: RunCalibration) -> None:
    """Prints each judge beside people's labels."""
    screen.print(f"{found.run}: {found.labelled:,} of {count(found.questions, 'question')} labelled in {found.labels}")
    for judge in found.judges:
        screen.print()
        screen.print(heading(judge.label), f"({judge.run})")
        _print_calibrated(screen, judge.calibration)


def _print_calibrated(screen: Console, found: Calibration) -> None:
    without = found.labelled - found.compared
    screen.print(
        f"{count(found.compared, 'question')} with label and verdict, {without:,} with a label alone, "
        f"{found.unlabelled:,} with a verdict alone"
    )
    shares = {
        "same as the label": found.agreement,
        "accuracy": found.accuracy,
        "precision of right": found.precision,
        "recall of right": found.recall,
    }
    rows: list[list[Cell]] = [[name, *share_cells(share)] for name, share in shares.items()]
    rows.append(["F1 of right", number(found.f1), "", ""])
    kappa = found.kappa
    bounds = "" if kappa.low is None else f"{kappa.low:.3f} to {kappa.high:.3f}"
    rows.append(["Cohen's kappa", number(kappa.value), bounds, kappa.note])
    if error := found.confidence:
        bins = f"of {count(found.stated, 'stated confidence')} in {count(len(error.bins), 'bin')}"
        rows.append(["calibration error", number(error.error), "", bins])
    columns = (
        Column(),
        Column(title="value", style="bold", right=True),
        Column(title="95 % interval", whole=True),
        Column(style="dim"),
    )
    print_rows(screen, columns, rows)
    confused = [[each.label, each.verdict, f"{each.questions:,}"] for each in found.confusion]
    screen.print()
    print_rows(
        screen, [Column(title="label"), Column(title="verdict"), Column(title="questions", right=True)], confused
    )
