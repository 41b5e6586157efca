"""The scores of a run in a table."""

from rich.console import Console

from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.common.humanize import number
from cotrail.services.views.run_scores import RunScores
from cotrail.services.views.score_tables import ConfidenceInterval, metric_rows


def print_scores(screen: Console, scores: RunScores) -> None:
    """Prints the metrics, each with its interval and its definition."""
    rows = [[row.name, number(row.mean), shown_range(row.interval, 3), row.definition] for row in metric_rows(scores)]
    work = (
        ("steps", scores.steps, "steps carried out"),
        ("prompt_tokens", scores.prompt_tokens, "tokens in prompts"),
        ("cached_prompt_tokens", scores.cached_prompt_tokens, "those of them that were in the model's cache already"),
        ("generated_tokens", scores.generated_tokens, "tokens that the model wrote"),
    )
    rows += [[name, f"{value:,}", "", definition] for name, value, definition in work]
    columns = (
        Column(),
        Column(title="value", style="bold", right=True),
        Column(title="95 % interval", whole=True),
        Column(style="dim"),
    )
    print_rows(screen, columns, rows)


def shown_range(interval: ConfidenceInterval | None, digits: int) -> str:
    """An interval with so many digits; empty where there is none."""
    return "" if interval is None else f"{interval.low:.{digits}f}-{interval.high:.{digits}f}"
