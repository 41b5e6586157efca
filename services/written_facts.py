"""What a text cost that a model wrote, and how it came about, in words for terminals and pages."""

from collections.abc import Iterator

from cotrail.common.humanize import count, duration
from cotrail.models.queries.traces import TracedStep


def written_facts(step: TracedStep) -> Iterator[str]:
    """The facts of a step whose text is written; none of another step."""
    if step.generated is None:
        return
    written = step.generated
    yield f"{count(written.prompt_tokens, 'token')} read ({written.cached_prompt_tokens:,} from the cache)"
    yield f"{written.generated_tokens:,} written"
    if written.drafted_tokens:
        yield f"{written.accepted_tokens} of {written.drafted_tokens} guessed"
    if step.milliseconds is not None:
        yield duration(step.milliseconds / 1000)
    if step.left_out:
        yield f"{count(step.left_out, 'paragraph')} didn't fit the context"
    if written.seed is not None:
        yield f"seed {written.seed}"
    if step.attempts > 1:
        yield count(step.attempts, "attempt")
    if step.adopted:
        yield "adopted from another run"
