"""The scores of a run in a table."""

from rich.console import Console

from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.services.results.scoring import RunScores, metric_rows


def print_scores(screen: Console, scores: RunScores, *, every: bool = False) -> None:
    """Prints the main metrics, each with its interval and its definition; every: all of them, and the work."""
    rows = [[row.name, row.value, row.bounds, row.definition] for row in metric_rows(scores) if every or row.is_main]
    work = (
        ("steps", scores.steps, "steps carried out"),
        ("prompt_tokens", scores.prompt_tokens, "tokens in prompts"),
        ("cached_prompt_tokens", scores.cached_prompt_tokens, "those of them that were in the model's cache already"),
        ("generated_tokens", scores.generated_tokens, "tokens that the model wrote"),
    )
    rows += [[name, f"{value:,}", "", definition] for name, value, definition in work] if every else []
    columns = (
        Column(),
        Column(title="value", style="bold", right=True),
        Column(title="95 % interval", whole=True),
        Column(style="dim"),
    )
    print_rows(screen, columns, rows)
