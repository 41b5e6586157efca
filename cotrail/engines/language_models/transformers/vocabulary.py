"""A model's vocabulary: texts to tokens and back."""

from collections.abc import Iterable
from typing import Any

from tokenizers.decoders import DecodeStream


class Vocabulary:
    """A tokenizer and the tokens that end a text; safe to use from many threads.

    tokenizer: a fast tokenizer of transformers; ends: the ids that a model writes when it is done.
    """

    def __init__(self, tokenizer: Any, ends: Iterable[int]) -> None:
        # Without transformers' wrapper, whose calls change truncation and padding for all threads.
        self._tokenizer = tokenizer.backend_tokenizer
        # A tokenizer file may ask for both, but prompts are cut only by `pack`.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.ends = frozenset(ends)

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """The tokens of a text; special: include those that the model expects at a prompt's beginning or end."""
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=special).ids
        return tokens

    def decode(self, tokens: list[int]) -> str:
        """The text of tokens, without special ones."""
        text: str = self._tokenizer.decode(tokens)
        return text

    def written(self) -> "Written":
        """An empty text, to be written token by token."""
        return Written(self._tokenizer)


class Written:
    """Incremental detokenization; a character of several tokens appears with its last one."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._stream = DecodeStream(skip_special_tokens=True)
        self.text = ""

    def take(self, token: int) -> str:
        """Takes the next token; returns what it adds to the text, often nothing."""
        piece: str = self._stream.step(self._tokenizer, token) or ""
        piece = piece.replace("\0", "\ufffd")  # no database stores NUL
        self.text += piece
        return piece
