"""Log probabilities of the tokens that a server wrote."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.storable_text import storable
from cotrail.engines.language_models.endpoint import Api, Endpoint
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


def scores_request(api: Api) -> dict[str, Any]:
    """Fields that a request needs in addition to be told the log probability of each token."""
    # llama.cpp returns none unless it is asked for the likeliest tokens too.
    return {"logprobs": True, "top_logprobs": 1} if api == "chat" else {"logprobs": 1}


def joined_scores(endpoint: Endpoint, events: Sequence[tuple[str, Any]]) -> tuple[tuple[str, float], ...]:
    """The tokens of a text with their log probabilities; joined, their texts are the text.

    A character that is made of several tokens belongs to the last of them, and the others' texts are empty. What wrote
    no text behind the last character, such as the model's end, isn't among them.

    events: the text of each event of the stream, and its log probabilities as the server wrote them.
    Raises StepError where the server returned none for some text.
    """
    scores: list[tuple[str, float]] = []
    for text, logprobs in events:
        tokens = _read(endpoint, logprobs)
        if text and not tokens:
            raise StepError(
                f"{endpoint.url} returns no log probabilities, which the step asks for: take a server that does, as "
                'vLLM and llama.cpp do; without = ["scores"] in the list of models has such runs refused'
            )
        scores += _spread(text, tokens)
    while scores and not scores[-1][0]:
        scores.pop()
    return tuple(scores)


def _read(endpoint: Endpoint, logprobs: Any) -> Scores:
    try:
        return msgspec.convert(logprobs or {}, _TokenScores).scores
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
