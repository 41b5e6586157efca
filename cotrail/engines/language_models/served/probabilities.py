"""Probabilities of continuations, from a server's log probabilities."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.engines.language_models.endpoint import Api, Endpoint
from cotrail.engines.language_models.probabilities import shares
from cotrail.engines.language_models.served.tokenizer import Dialect
from cotrail.errors import StepError

LIKELIEST: dict[Api, dict[Dialect, int]] = {
    "completions": {"openai": 5, "llama.cpp": 1000, "vllm": 20},
    "chat": {"openai": 20, "llama.cpp": 1000, "vllm": 20},
}
"""The most tokens whose probabilities a server returns; OpenAI returns no more, nor does vLLM by default."""


class _Token(Struct, frozen=True):
    token: str
    logprob: float


class _Position(Struct, frozen=True):
    top_logprobs: tuple[_Token, ...] = ()


class _Logprobs(Struct, frozen=True):
    """The likeliest tokens at each position: `content` of chats, and of everything that llama.cpp's server writes."""

    content: tuple[_Position, ...] | None = None
    top_logprobs: tuple[dict[str, float] | None, ...] | None = None

    @property
    def first(self) -> dict[str, float]:
        """The log probability of each token to be the first one, by its text."""
        if self.content:
            return {each.token: each.logprob for each in self.content[0].top_logprobs}
        return (self.top_logprobs[0] if self.top_logprobs else None) or {}


def probabilities_request(api: Api, dialect: Dialect) -> dict[str, Any]:
    """Fields that a request needs in addition to be told the likeliest tokens."""
    count = LIKELIEST[api][dialect]
    return {"logprobs": True, "top_logprobs": count} if api == "chat" else {"logprobs": count}


def choice_shares(endpoint: Endpoint, logprobs: Any, choices: Sequence[str]) -> tuple[float, ...]:
    """The probability of each choice among the choices alone, by the first token that a server wrote.

    logprobs: what the server returned, None for nothing. Raises StepError where it doesn't name each choice's first
        token.
    """
    try:
        likely = msgspec.convert(logprobs or {}, _Logprobs).first
    except msgspec.ValidationError as error:
        raise StepError(f"{endpoint.url} returns log probabilities that aren't in OpenAI's form: {error}") from error
    tokens = [_beginning(likely, choice) for choice in choices]
    for choice, token in zip(choices, tokens, strict=True):
        if token is None or tokens.count(token) > 1:
            raise StepError(
                f"{endpoint.url} returned {len(likely)} likely next tokens, and none of them stands for {choice!r} "
                "alone: use a model that cotrail's own workers run, or another entailer"
            )
    highest = max(likely.values())
    return shares([_weight(likely, token, highest) for token in tokens if token is not None])


def _beginning(likely: Mapping[str, float], choice: str) -> str | None:
    """The longest token that a choice begins with, without the space before it, which servers treat differently."""
    tokens = {token.strip() for token in likely} - {""}
    return max((token for token in tokens if choice.strip().startswith(token)), key=len, default=None)


def _weight(likely: Mapping[str, float], beginning: str, highest: float) -> float:
    return sum(math.exp(logprob - highest) for token, logprob in likely.items() if token.strip() == beginning)
