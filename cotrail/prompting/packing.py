"""Fits a prompt into a model's context by leaving out whole parts."""

from collections.abc import Callable, Sequence
from itertools import accumulate

from cotrail.errors import PromptTooLongError
from cotrail.prompting.prompt import Prompt


def pack(prompt: Prompt, count_tokens: Callable[[str], int], limit: int) -> Prompt:
    """The prompt with as many of its parts as fit into `limit` tokens; nothing is ever cut within a part.

    Demonstrations go first, the last one first: all prompts of a run then begin alike, which is what a prefix cache
    needs. (The authors' code drops the first one.) Only when none is left do paragraphs go, the latest first: the
    earliest were found with the question itself, and the prompts of one question begin alike too.

    `count_tokens` is asked about each part by itself, so that it can remember the answers, which gives an estimate,
    and then about the whole text until the estimate is settled, as a rule once or twice.
    Raises PromptTooLongError where the question and its chain alone don't fit.
    """

    def fits(candidate: Prompt) -> bool:
        return count_tokens(candidate.render()) <= limit

    def with_demonstrations(number: int) -> Prompt:
        return prompt.keep(number, len(prompt.paragraphs))

    test = with_demonstrations(0)
    if fits(test):
        sizes = [count_tokens(d.render()) for d in prompt.demonstrations.items]
        return with_demonstrations(
            _most(sizes, limit - count_tokens(test.render()), lambda n: fits(with_demonstrations(n)))
        )
    bare = prompt.keep(0, 0)
    if not fits(bare):
        raise PromptTooLongError(
            f"the question and its {len(prompt.sentences)} sentences take {count_tokens(bare.render())} tokens, "
            f"and the context has room for {limit}: take a model with a longer context, or fewer tokens a generation"
        )
    sizes = [count_tokens(f"{p.title}\n{p.text}") for p in prompt.paragraphs]
    return prompt.keep(0, _most(sizes, limit - count_tokens(bare.render()), lambda n: fits(prompt.keep(0, n))))


def _most(sizes: Sequence[int], room: int, fits: Callable[[int], bool]) -> int:
    """How many parts fit, from the front; `sizes` is near the truth, `fits` is the truth, and none do fit."""
    number = sum(total <= room for total in accumulate(sizes))
    if fits(number):
        while number < len(sizes) and fits(number + 1):
            number += 1
        return number
    while not fits(number):
        number -= 1
    return number
