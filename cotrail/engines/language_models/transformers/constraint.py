"""Constrained decoding: which tokens may come next, by llguidance (Microsoft's, in Rust)."""

import json
from collections.abc import Mapping
from functools import cached_property

import torch
from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from cotrail.engines.language_models.grammars import Grammars, Guide
from cotrail.engines.language_models.transformers.vocabulary import Vocabulary
from cotrail.engines.language_models.worker_thoughts import ThinkingText

MOST_STATES = 25_000
"""The most states of a grammar's lexer, 1 to 2 kB each: a tenth of the library's own bound, since each text has its
own. Schemas as they are used take hundreds."""

_METASPACE = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ],
}
"""The decoder of SentencePiece's vocabularies in the form that llguidance reads, which knows no `Metaspace`."""


class GrammarConstraint:
    """Holds a generation to its grammars, token by token.

    matchers: of each grammar that could be compiled.
    """

    def __init__(self, guide: Guide, matchers: Mapping[str, LLMatcher]) -> None:
        self._guide = guide
        self._matchers = matchers
        self._matcher = matchers.get(guide.grammar)

    def masked(self, logits: torch.Tensor) -> torch.Tensor:
        """See `Constraint`."""
        if self._matcher is None:
            return logits
        allowed = torch.frombuffer(bytearray(self._matcher.compute_logit_bias()), dtype=torch.uint8)[
            : len(logits)
        ].bool()
        # Beyond the library's bounds, or beyond the vocabulary: the rest is written freely.
        if self._matcher.is_error() or not allowed.any():
            self._matcher = None
            return logits
        # A model may have more logits than its vocabulary has tokens.
        refused = torch.ones(len(logits), dtype=torch.bool)
        refused[: len(allowed)] = ~allowed
        return logits.masked_fill(refused, -torch.inf)

    def take(self, token: int) -> None:
        """See `Constraint`."""
        # Where another grammar begins, this token has ended the former one's part and belongs to neither matcher.
        if self._guide.follow():
            self._matcher = self._matchers.get(self._guide.grammar)
        elif self._matcher is not None:
            self._matcher.consume_token(token)


class Constraints:
    """Makes the constraints of a vocabulary's texts; safe to use from many threads."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def of(self, grammars: Grammars, written: ThinkingText) -> GrammarConstraint | None:
        """Holds a text to its grammars; None where it is held to nothing."""
        tokenizer = self._tokenizer if grammars.start else None
        if tokenizer is None:
            return None
        limits = LLParserLimits(max_lexer_states=MOST_STATES, verbose_errors=False)
        compiled = {
            grammar: LLMatcher(tokenizer, grammar, log_level=0, limits=limits)
            for grammar in (grammars.start, grammars.behind_thought)
            if grammar
        }
        matchers = {grammar: matcher for grammar, matcher in compiled.items() if not matcher.is_error()}
        return GrammarConstraint(Guide(grammars, written), matchers)

    # It takes a second, which only models that are asked for a form should.
    @cached_property
    def _tokenizer(self) -> LLTokenizer | None:
        """The vocabulary for llguidance; None where it can't be read, or no token ends a text."""
        described = self._vocabulary.described
        if (described["decoder"] or {}).get("type") == "Metaspace":
            described["decoder"] = _METASPACE
        try:
            return LLTokenizer(json.dumps(described), eos_token=sorted(self._vocabulary.ends))
        except ValueError:
            return None
