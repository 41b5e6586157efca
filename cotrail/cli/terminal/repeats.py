"""Scores of repeats on a terminal."""

from rich.console import Console

from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.cli.terminal.output import heading
from cotrail.common.humanize import count
from cotrail.services.results.scoring import RepeatedScores, shown_bounds, shown_mean


def print_repeats(screen: Console, scores: RepeatedScores) -> None:
    """Prints the means over questions and repeats, and pass@k of the metrics that are 0 or 1."""
    missing = scores.times - len(scores.runs)
    removed = f", {missing} of which removed" if missing else ""
    screen.print(heading(f"Over {count(scores.times, 'repeat')}{removed}: {', '.join(scores.runs)}"), soft_wrap=True)
    _print_means(screen, scores)
    screen.print()
    _print_pass_at_k(screen, scores)
    screen.print(scores.caveat, style="dim")


def _print_means(screen: Console, scores: RepeatedScores) -> None:
    columns = (
        Column(),
        Column(title="mean", style="bold", right=True),
        Column(title="error", right=True),
        Column(title="95 % interval", whole=True),
        Column(title="between repeats", right=True),
    )
    rows = [
        [
            name,
            shown_mean(name, each.mean),
            shown_mean(name, each.standard_error),
            shown_bounds(name, each.interval),
            shown_mean(name, each.deviation),
        ]
        for name, each in scores.metrics.items()
        if each
    ]
    print_rows(screen, columns, rows)


def _print_pass_at_k(screen: Console, scores: RepeatedScores) -> None:
    by_metric = {name: each.pass_at for name, each in scores.metrics.items() if each and each.pass_at}
    columns = [Column(), *(Column(title=name) for name in by_metric)]
    rows = [
        [
            f"pass@{column[0].k}",
            *(
                f"{shown_mean(name, each.mean)} ({shown_bounds(name, each.interval)})"
                for name, each in zip(by_metric, column, strict=True)
            ),
        ]
        for column in zip(*by_metric.values(), strict=True)
    ]
    print_rows(screen, columns, rows)
