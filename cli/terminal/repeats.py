"""Scores of repeats on a terminal."""

from rich.console import Console

from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.cli.terminal.output import heading
from cotrail.common.humanize import count, number
from cotrail.services.views.run_scores import REPEATS_CAVEAT, ConfidenceInterval, RepeatedScores


def print_repeats(screen: Console, scores: RepeatedScores) -> None:
    """Prints the means over questions and repeats, and pass@k of the metrics that are 0 or 1."""
    missing = scores.times - len(scores.runs)
    removed = f", {missing} of which removed" if missing else ""
    screen.print(heading(f"Over {count(scores.times, 'repeat')}{removed}: {', '.join(scores.runs)}"), soft_wrap=True)
    _print_means(screen, scores)
    screen.print()
    _print_pass_at_k(screen, scores)
    screen.print(REPEATS_CAVEAT, style="dim")


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
            number(each.mean),
            number(each.standard_error),
            _range(each.interval),
            number(each.deviation),
        ]
        for name, each in scores.metrics.items()
        if each
    ]
    print_rows(screen, columns, rows)


def _print_pass_at_k(screen: Console, scores: RepeatedScores) -> None:
    by_metric = {name: each.pass_at for name, each in scores.metrics.items() if each and each.pass_at}
    columns = [Column(), *(Column(title=name) for name in by_metric)]
    rows = [
        [f"pass@{column[0].k}", *(f"{number(each.mean)} {_range(each.interval)}" for each in column)]
        for column in zip(*by_metric.values(), strict=True)
    ]
    print_rows(screen, columns, rows)


def _range(interval: ConfidenceInterval | None) -> str:
    return "" if interval is None else f"{interval.low:.3f}-{interval.high:.3f}"
