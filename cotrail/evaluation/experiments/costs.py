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
    """What a run's steps took, each as it was when it was computed; `adopted` of the steps another run computed."""

    steps: int
    adopted: int
    model_calls: int
    prompt_tokens: int
    cached_prompt_tokens: int
    generated_tokens: int
    seconds: float


def spent(costs: Sequence[Cost], shared_by: int) -> dict[str, Value]:
    """What several runs took, by so many; nothing where these are none."""
    sums = {each.name: sum(getattr(cost, each.name) for cost in costs) for each in (*SPENT, *STEPS)}
    shares = {each.name: sums[each.name] / shared_by if shared_by else None for each in SPENT}
    return {**sums, **shares}
