"""What the engines have in common when they tell how likely each of several continuations is."""

from collections.abc import Callable, Sequence

from cotrail.errors import PromptTooLongError, StepError


def first_tokens(encode: Callable[[str], list[int]], text: str, choices: Sequence[str]) -> list[int]:
    """The tokens that the choices begin with behind a text; StepError where two of them have the same or none.

    encode: a text's tokens.
    """
    before = encode(text)
    firsts = [_next(before, encode(text + choice)) for choice in choices]
    if None in firsts or len(set(firsts)) < len(firsts):
        raise StepError(
            f"the model's tokens don't tell apart how {', '.join(map(repr, choices))} begin: take choices that differ "
            "in their first words, or another model"
        )
    return [first for first in firsts if first is not None]


def check_fits(tokens: int, context: int) -> None:
    """Raises PromptTooLongError where a text takes more tokens than a context."""
    if tokens > context:
        raise PromptTooLongError(f"the text has {tokens} tokens, and the context has room for {context}")


def shares(weights: Sequence[float]) -> tuple[float, ...]:
    """The same proportions, adding up to 1."""
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def _next(before: list[int], after: list[int]) -> int | None:
    """The first token that the longer text adds; None where it changes the tokens before."""
    return after[len(before)] if len(after) > len(before) and after[: len(before)] == before else None
