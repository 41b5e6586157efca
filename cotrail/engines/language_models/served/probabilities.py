"""Log probabilities of the tokens that a server wrote, and probabilities of continuations from them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.printable_text import storable
from cotrail.engines.language_models.endpoint import Api, Endpoint
from cotrail.engines.language_models.result import shares
from cotrail.engines.language_models.token_counts import Dialect
from cotrail.errors import StepError

Scores = Sequence[tuple[str, float]]
"""The text and the log probability of each token."""


class _ScoredToken(Struct, frozen=True):
    token: str
    logprob: float


class _TokenScores(Struct, frozen=True):
    """Tokens of one event: `content` of chats, and of everything that llama.cpp's server writes, or else two lists."""

    content: tuple[_ScoredToken, ...] | None = None
    tokens: tuple[str, ...] | None = None
    token_logprobs: tuple[float, ...] | None = None

    @property
    def scores(self) -> Scores:
        if self.content:
            return [(each.token, each.logprob) for each in self.content]
        return list(zip(self.tokens or (), self.token_logprobs or (), strict=True))


def scores_request(api: Api, likeliest: int = 1) -> dict[str, Any]:
    """Fields that a request needs in addition to get the log probabilities of each token and of so many likeliest."""
    # llama.cpp returns none unless it is asked for the likeliest tokens too.
    return {"logprobs": True, "top_logprobs": likeliest} if api == "chat" else {"logprobs": likeliest}


def joined_scores(endpoint: Endpoint, events: Sequence[tuple[str, Any]]) -> tuple[tuple[str, float], ...]:
    """The tokens of a text with their log probabilities; joined, their texts are the text.

    A character that is made of several tokens belongs to the last of them, and the others' texts are empty. What wrote
    no text behind the last character, such as the model's end, isn't among them.

    events: the text of each event of the stream, and its log probabilities as the server wrote them.
    Raises StepError where the server returned none for some text.
    """
    scores: list[tuple[str, float]] = []
    for text, logprobs in events:
        with _in_form(endpoint):
            tokens = msgspec.convert(logprobs or {}, _TokenScores).scores
        if text and not tokens:
            raise StepError(
                f"{endpoint.url} returns no log probabilities, which the step asks for: take a server that does, as "
                'vLLM and llama.cpp do; without = ["scores"] in the list of models has such runs refused'
            )
        scores += _spread(text, tokens)
    while scores and not scores[-1][0]:
        scores.pop()
    return tuple(scores)


@contextmanager
def _in_form(endpoint: Endpoint) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise StepError(f"{endpoint.url} returns log probabilities that aren't in OpenAI's form: {error}") from error


def _spread(text: str, scores: Scores) -> list[tuple[str, float]]:
    """The same tokens with texts that join to the event's text, which differs where characters were incomplete."""
    spread, rest = [], text
    for token, logprob in scores:
        shown = storable(token)
        part = shown if rest.startswith(shown) else ""
        rest = rest.removeprefix(part)
        spread.append((part, logprob))
    if rest:
        part, logprob = spread[-1]
        spread[-1] = (part + rest, logprob)
    return spread


LIKELIEST: dict[Api, dict[Dialect, int]] = {
    "completions": {"openai": 5, "llama.cpp": 1000, "vllm": 20},
    "chat": {"openai": 20, "llama.cpp": 1000, "vllm": 20},
}
"""The most tokens whose probabilities a server returns; OpenAI returns no more, nor does vLLM by default."""


class _Position(Struct, frozen=True):
    top_logprobs: tuple[_ScoredToken, ...] = ()


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
    """Fields that a request needs in addition to get the likeliest tokens."""
    return scores_request(api, LIKELIEST[api][dialect])


def choice_shares(endpoint: Endpoint, logprobs: Any, choices: Sequence[str]) -> tuple[float, ...]:
    """The probability of each choice among the choices alone, by the first token that a server wrote.

    logprobs: what the server returned, None for nothing. Raises StepError where it doesn't name each choice's first
        token.
    """
    with _in_form(endpoint):
        likely = msgspec.convert(logprobs or {}, _Logprobs).first
    tokens = [_beginning(likely, choice) for choice in choices]
    for choice, token in zip(choices, tokens, strict=True):
        if token is None or tokens.count(token) > 1:
            raise StepError(
                f"{endpoint.url} returned {len(likely)} likely next tokens, and none of them stands for {choice!r} "
                "alone: use a model that cotrail's own workers run, or another entailer"
            )
    highest = max(likely.values())
    return shares(
        [
            sum(math.exp(logprob - highest) for token, logprob in likely.items() if token.strip() == beginning)
            for beginning in tokens
        ]
    )


def _beginning(likely: Mapping[str, float], choice: str) -> str | None:
    """The longest token that a choice begins with, without the space before it, which servers treat differently."""
    tokens = {token.strip() for token in likely} - {""}
    return max((token for token in tokens if choice.strip().startswith(token)), key=len, default=None)
