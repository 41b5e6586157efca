"""Cost of a run: the work of its steps when they were computed."""

from cotrail.evaluation.experiments.costs import Cost
from models.queries.progress import Progress

MODEL_KINDS = ("reason", "read")
"""The kinds of steps that call the language model in the systems that experiments compare."""


def run_cost(progress: Progress) -> Cost:
    """The steps, model calls, tokens and seconds of a run; adopted steps are counted apart and took nothing."""
    return Cost(
        steps=progress.steps,
        adopted=sum(counts.adopted for counts in progress.kinds),
        model_calls=sum(counts.done for counts in progress.kinds if counts.kind in MODEL_KINDS),
        prompt_tokens=progress.tokens("prompt_tokens"),
        cached_prompt_tokens=progress.tokens("cached_prompt_tokens"),
        generated_tokens=progress.tokens("generated_tokens"),
        seconds=sum(counts.milliseconds for counts in progress.kinds) / 1000,
    )
