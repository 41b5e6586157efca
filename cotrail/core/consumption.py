"""What ended steps took of budgets."""

from cotrail.core.budgets import Consumed, priced
from cotrail.core.history import Outcome
from cotrail.core.money import ModelPrice, Usage
from cotrail.core.results import Failure, Generated


def consumed_by(outcome: Outcome, milliseconds: float, price: ModelPrice | None) -> Consumed:
    """What an ended step took; price: of the model that it asked, None where that costs nothing."""
    written = outcome.written if isinstance(outcome, Failure) else outcome
    return priced(usage_of(written) if isinstance(written, Generated) else Usage(), milliseconds, price)


def usage_of(result: Generated) -> Usage:
    """The tokens of a call."""
    return Usage(
        calls=1,
        input_tokens=result.prompt_tokens,
        cached_tokens=result.cached_prompt_tokens,
        cache_written_tokens=result.cache_written_tokens,
        output_tokens=result.generated_tokens,
        thought_tokens=result.thought_tokens,
        estimated=int(result.estimated),
    )
