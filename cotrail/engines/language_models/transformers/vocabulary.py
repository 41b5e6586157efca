"""A model's vocabulary: texts to tokens and back."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from cotrail.common.printable_text import storable
from cotrail.engines.language_models.stop_conditions import GrowingText
from cotrail.engines.language_models.thinking import Segment, control_pattern

SEEN_BEFORE = 8
"""Tokens before a text that decide how its first one is shown; a character has at most four."""


class Vocabulary:
    """A tokenizer and the tokens that end a text; safe to use from many threads.

    Control tokens in a text are plain text, except in a system's own words and in what the model wrote: the author of a
    paragraph can't end a text or open a turn with it.

    tokenizer: a fast tokenizer of transformers; ends: the ids that a model writes when it is done.
    """

    def __init__(self, tokenizer: Any, ends: Iterable[int]) -> None:
        # Without transformers' wrapper, whose calls change truncation and padding for all threads.
        self._tokenizer = tokenizer.backend_tokenizer
        # A tokenizer file may ask for both, but prompts are cut only by `pack`.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.ends = frozenset(ends)
        self.bos, self.eos = tokenizer.bos_token or "", tokenizer.eos_token or ""
        added = self._tokenizer.get_added_tokens_decoder()
        self._numbers = {token.content: number for number, token in added.items() if token.special and token.content}
        self.control = control_pattern(self._numbers)

    @property
    def controls(self) -> tuple[str, ...]:
        """The texts of all control tokens."""
        return tuple(self._numbers)

    @property
    def described(self) -> dict[str, Any]:
        """The tokenizer as its file has it (tokenizer.json)."""
        described: dict[str, Any] = json.loads(self._tokenizer.to_str())
        return described

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """The tokens of a text; special: include those that the model expects at a prompt's beginning or end."""
        if self.control.search(text):
            return self._ids(self._quoting, storable(text), special=special)
        return self._ids(self._tokenizer, text, special=special)

    def ends_text(self, control: str) -> bool:
        """Return whether this control token ends a text."""
        return self._numbers[control] in self.ends

    def encode_segments(self, segments: Sequence[Segment], *, special: bool) -> list[int]:
        """The tokens of a prompt; special: as in `encode`, False for a conversation, whose template lays them out."""
        if not any(segment.plain for segment in segments):
            return self._ids(self._tokenizer, "".join(segment.text for segment in segments), special=special)
        text = "".join(
            storable(segment.text) if segment.plain else self._named(storable(segment.text)) for segment in segments
        )
        return self._ids(self._quoting, text, special=special)

    def decode(self, tokens: list[int]) -> str:
        """The text of tokens, without special ones."""
        text: str = self._tokenizer.decode(tokens)
        return text

    @cached_property
    def own_tokens(self) -> Mapping[str, int]:
        return {token.content: number for number, token in self._tokenizer.get_added_tokens_decoder().items()}

    def written(self, before: Sequence[int] = (), shown: Sequence[str] = ()) -> "GrowingTokens":
        """An empty text, to be written token by token.

        before: the tokens that it stands behind; where there are none, some tokenizers drop the blank that it begins
            with. shown: the control tokens that are a part of the text.
        """
        return GrowingTokens(self._tokenizer, before[-SEEN_BEFORE:], {self._numbers[text]: text for text in shown})

    def encode_written(self, text: str) -> list[int]:
        """The tokens of a text that an engine writes in the model's place, with its control tokens."""
        return self._ids(self._tokenizer, text, special=False)

    @cached_property
    def _quoting(self) -> Tokenizer:
        """The same tokenizer with control tokens under other names, so that their own texts are plain text to it."""
        return renamed(self._tokenizer, {text: _name(number) for text, number in self._numbers.items()})

    def _named(self, text: str) -> str:
        """The text with its control tokens under the names that `_quoting` has for them."""
        return self.control.sub(lambda match: _name(self._numbers[match[0]]), text)

    def _ids(self, tokenizer: Tokenizer, text: str, *, special: bool) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=special).ids
        return ids


class GrowingTokens:
    """Incremental detokenization; a character of several tokens appears with its last one."""

    def __init__(self, tokenizer: Any, before: Sequence[int], shown: Mapping[int, str]) -> None:
        self._tokenizer = tokenizer
        self._shown = shown
        self._stream = DecodeStream(list(before), skip_special_tokens=True)
        self._written = GrowingText()

    @property
    def text(self) -> str:
        """What was written so far."""
        return self._written.text

    def take(self, token: int) -> str:
        """Takes the next token; returns what it adds to the text, often nothing."""
        piece: str = self._stream.step(self._tokenizer, token) or ""
        piece += self._shown.get(token, "")
        piece = piece.replace("\0", "\ufffd")  # no database stores NUL
        self._written.add(piece)
        return piece


def renamed(tokenizer: Tokenizer, names: dict[str, str]) -> Tokenizer:
    """The same tokenizer, with other texts for some of its tokens."""
    # tokenizers' own `encode_special_tokens` isn't enough: a vocabulary that lists control tokens among its pieces
    # (T5's does) would still make them of a text.
    described = json.loads(tokenizer.to_str())
    for token in described["added_tokens"]:
        if token["content"] in names:
            # A normalizer might change the name.
            token.update(content=names[token["content"]], normalized=False)
    model = described["model"]
    if isinstance(model["vocab"], dict):
        model["vocab"] = {names.get(piece, piece): number for piece, number in model["vocab"].items()}
    else:
        model["vocab"] = [[names.get(piece, piece), score] for piece, score in model["vocab"]]
    if unknown := model.get("unk_token"):
        model["unk_token"] = names.get(unknown, unknown)
    if "merges" in model:
        model["merges"] = [pair for pair in model["merges"] if not {*pair, "".join(pair)} & names.keys()]
    return Tokenizer.from_str(json.dumps(described))


def _name(number: int) -> str:
    # No text that can be stored holds NUL.
    return f"\0{number}\0"
