"""Costs of runs, as tables show them: model calls, tokens, time and steps."""

from collections.abc import Sequence

from msgspec import Struct

from cotrail.evaluation.experiments.report_tables import Column, Value

SPENT = (
    Column("model_calls", "Model calls", "decimal"),
    Column("prompt_tokens", "Tokens read", "count"),
    Column("cached_prompt_tokens", "of them cached", "count"),
    Column("generated_tokens", "Tokens written", "count"),
    Column("seconds", "Time", "seconds"),
)
STEPS = (Column("steps", "Steps", "count"), Column("adopted", "of them adopted", "count"))

PER_QUESTION = "Calls, tokens and time are those of an answered question on average; steps are those of all questions."


class Cost(Struct, frozen=True, kw_only=True):
    """Cost of a run's steps; adopted: steps that another run computed, which count with what they cost there."""

    steps: int
    adopted: int
    model_calls: int
    prompt_tokens: int
    cached_prompt_tokens: int
    generated_tokens: int
    seconds: float


def spent(costs: Sequence[Cost], shared_by: int) -> dict[str, Value]:
    """Sum the costs of several runs, and divide them by `shared_by` questions; None where that is 0."""
    sums = {each.name: sum(getattr(cost, each.name) for cost in costs) for each in (*SPENT, *STEPS)}
    shares = {each.name: sums[each.name] / shared_by if shared_by else None for each in SPENT}
    return {**sums, **shares}
