"""Probabilities of several continuations, as all engines compute them: by their first tokens."""

from collections.abc import Callable, Sequence

from cotrail.errors import PromptTooLongError, StepError


def first_tokens(encode: Callable[[str], list[int]], text: str, choices: Sequence[str]) -> list[int]:
    """The first token of each choice behind a text; raises StepError where two choices have the same or one has none.

    encode: returns a text's tokens.
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
    """Raises PromptTooLongError where a text has more tokens than the context."""
    if tokens > context:
        raise PromptTooLongError(f"the text has {tokens} tokens, and the context has room for {context}")


def shares(weights: Sequence[float]) -> tuple[float, ...]:
    """The weights normalized to a sum of 1."""
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def _next(before: list[int], after: list[int]) -> int | None:
    """The first token that the longer text adds; None where it changes the tokens before it."""
    # A tokenizer may merge the end of the text with the choice's beginning; the probability behind the text is then not
    # the choice's.
    return after[len(before)] if len(after) > len(before) and after[: len(before)] == before else None
