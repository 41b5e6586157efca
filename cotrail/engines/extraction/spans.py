"""The choice of an answer among the spans of a paragraph's tokens."""

from collections.abc import Sequence

from cotrail.core.ports.extractor import MOST_TOKENS

Span = tuple[int, int]
"""A first and a last token, or a first character and the one behind the last."""


def best_span(starts: Sequence[float], ends: Sequence[float]) -> Span | None:
    """The first and the last token of the answer, at most `MOST_TOKENS`; None where there are no tokens.

    starts, ends: each token's logits of being the first and the last. The sum of the two decides; of equal sums the
    earliest span counts, and of these the shortest.
    """
    tokens = range(len(starts))
    spans = ((first, last) for first in tokens for last in tokens[first : first + MOST_TOKENS])
    return max(spans, key=lambda span: starts[span[0]] + ends[span[1]], default=None)


def trimmed(text: str, span: Span) -> Span:
    """The characters of a span without spaces around them, which some tokenizers count as part of a word."""
    start, end = span
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip()) if piece.strip() else end
