"""Probabilities of tokens from llama.cpp, however unlikely they are."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cotrail.engines.language_models.llamacpp.stream import LlamaCppStream
from cotrail.engines.language_models.probabilities import shares
from cotrail.errors import StepError

BIAS = 100.0
"""Bias in nats on the logits of the tokens in question. It is the same for each, so that their proportions stay, and so
large that they come before all other tokens: llama.cpp returns the likeliest tokens only, and returning all of them
takes far longer than reading a short prompt."""


class ChoiceStream(LlamaCppStream):
    """Takes the probabilities of tokens; the token that is written isn't used.

    tokens: those in question, all different.
    """

    def __init__(self, tokens: Sequence[int], interrupted: Callable[[], bool]) -> None:
        super().__init__("line", interrupted)
        self._tokens = tokens
        self._found: dict[int, float] = {}

    @property
    def asks(self) -> dict[str, Any]:
        """See `Stream`."""
        bias = [[token, BIAS] for token in self._tokens]
        return {"n_probs": len(self._tokens), "post_sampling_probs": True, "logit_bias": bias}

    def take(self, chunk: Mapping[str, Any]) -> bool:
        """See `Stream`."""
        for choice in chunk.get("choices", ()):
            for position in (choice.get("logprobs") or {}).get("content", ()):
                self._found |= {each["id"]: each["prob"] for each in position["top_probs"]}
        return super().take(chunk)

    def shares(self) -> tuple[float, ...]:
        """The probabilities of the tokens among them alone."""
        if not self._found.keys() >= set(self._tokens):
            raise StepError(f"llama.cpp rates one of the choices as less likely than e^-{BIAS:.0f}")
        return shares([self._found[token] for token in self._tokens])
