"""Texts that look like control tokens, in what a prompt only quotes: a server's tokenizer would take them for such."""

import re
from itertools import pairwise

from cotrail.core.prompts import Prompt, Span, quoted_spans

BREAK = "\u200b"
"""A zero-width space, which keeps a text from being a control token where only text can be sent."""

_LOOKS_LIKE_ONE = re.compile(
    # ChatML, Llama 3, Phi, Gemma 4 and most others; DeepSeek's bars are full-width.
    r"<\|[^\s<>|\u200b]{1,60}\|?>|<[^\s<>|\u200b]{1,60}\|>|<\uff5c[^\s<>\u200b]{1,60}\uff5c>"
    # SentencePiece's own, T5's and Gemma's.
    r"|</?s>|<(?:bos|eos|pad|unk|mask|sep|cls|eod|eot|eoa|sop|extra_id_\d+|(?:start|end)_of_\w+|[A-Z_]+_TOKEN)>"
    # Llama 2's and Mistral's, and BERT's.
    r"|<</?SYS>>|\[/?(?:[A-Z]+_[A-Z_]+|INST|THINK|ARGS|IMG|BOS|EOS|CLS|SEP|PAD|UNK|MASK|gMASK)\]"
)

_BEGINS_ONE = re.compile(f"(?=({_LOOKS_LIKE_ONE.pattern}))")
"""Without width, since one may stand within another: `<|[INST]|>`."""


def control_tokens(text: str) -> frozenset[str]:
    """What looks like a control token of some model's."""
    return frozenset(_LOOKS_LIKE_ONE.findall(text))


def cut_controls(text: str) -> list[str]:
    """The text in pieces, none of which holds what looks like a control token: each is cut behind its first character.

    Joined, the pieces are the text again.
    """
    return _cut(text, _spans(text))


def cut_quoted(prompt: Prompt) -> list[list[str]]:
    """Each turn's text in pieces, cut in the same way where it only quotes what looks like a control token."""
    spans = quoted_spans(prompt.turns, _spans)
    return [_cut(turn.text, quoted) for turn, quoted in zip(prompt.turns, spans, strict=True)]


def broken(text: str) -> str:
    """The text with a `BREAK` behind the first character of what looks like a control token."""
    return BREAK.join(cut_controls(text))


def _spans(text: str) -> list[Span]:
    return [match.span(1) for match in _BEGINS_ONE.finditer(text)]


def _cut(text: str, spans: list[Span]) -> list[str]:
    return [text[start:end] for start, end in pairwise([0, *(start + 1 for start, _ in spans), len(text)])]
