"""Metadata of GGUF files: vocabulary, chat template and the like, read without the weights.

The format is llama.cpp's (ggml, docs/gguf.md). The library gguf reads all of a file's tensors too, which takes seconds.
"""

import struct
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from cotrail.errors import InputError

MAGIC = b"GGUF"
CONTROL, USER_DEFINED = 3, 4
"""The kinds of control tokens and of tokens that were added, in `tokenizer.ggml.token_type`."""

_NUMBERS = {
    kind: struct.Struct(f"<{code}")
    for kind, code in {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?"}.items()
} | {kind: struct.Struct(f"<{code}") for kind, code in {10: "Q", 11: "q", 12: "d"}.items()}
_STRING, _ARRAY = 8, 9
_UINT32, _UINT64 = _NUMBERS[4], _NUMBERS[10]


class GgufMetadata:
    """What a file says of its model. Raises InputError where it can't be read."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self._values = _read(file)
        except OSError as error:
            raise InputError(f"the model file {path} can't be read: {error.strerror}") from error
        except (struct.error, KeyError, ValueError, OverflowError, MemoryError) as error:
            raise InputError(
                f"{path} is no GGUF file, or damaged: {error}; its path must be a model in that format, as model.gguf"
            ) from error

    @property
    def chat_template(self) -> str | None:
        """The model's chat template; None where it has none."""
        return self._values.get("tokenizer.chat_template")

    @property
    def bos(self) -> str:
        """The token that begins a text; empty where there is none."""
        return self._token("bos")

    @property
    def eos(self) -> str:
        """The token that ends a text; empty where there is none."""
        return self._token("eos")

    @property
    def controls(self) -> dict[str, int]:
        """The texts of all control tokens, with their ids."""
        kinds = self._values.get("tokenizer.ggml.token_type", ())
        named = zip(self._tokens, kinds, strict=False)
        return {text: number for number, (text, kind) in enumerate(named) if kind == CONTROL}

    @property
    def own_tokens(self) -> dict[str, int]:
        """The texts and ids of all tokens that aren't pieces of words: control tokens, and those that were added."""
        kinds = self._values.get("tokenizer.ggml.token_type", ())
        named = zip(self._tokens, kinds, strict=False)
        return {text: number for number, (text, kind) in enumerate(named) if kind in (CONTROL, USER_DEFINED)}

    @property
    def _tokens(self) -> list[str]:
        return self._values.get("tokenizer.ggml.tokens", [])  # type: ignore[no-any-return]

    def _token(self, name: str) -> str:
        number = self._values.get(f"tokenizer.ggml.{name}_token_id")
        return "" if number is None or number >= len(self._tokens) else self._tokens[number]


def gguf_metadata(path: Path) -> GgufMetadata:
    """The metadata of a file; an unchanged file is read only once. Raises InputError."""
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"the model file {path} can't be read: {error.strerror}") from error
    return _metadata(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=8)
def _metadata(path: Path, size: int, mtime_ns: int) -> GgufMetadata:  # noqa: ARG001 - a changed file is read again
    return GgufMetadata(path)


def _read(file: BinaryIO) -> dict[str, Any]:
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError(f"it doesn't begin with {MAGIC.decode()}")
    _number(file, _UINT32)  # the format's version
    _number(file, _UINT64)  # the number of tensors
    count = _number(file, _UINT64)
    return {_string(file): _value(file, _number(file, _UINT32)) for _ in range(count)}


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        return _number(file, _NUMBERS[kind])
    kind, count = _number(file, _UINT32), _number(file, _UINT64)
    return [_value(file, kind) for _ in range(count)]


def _string(file: BinaryIO) -> str:
    # Pieces of a vocabulary may end within a character.
    return file.read(_number(file, _UINT64)).decode(errors="replace")


def _number(file: BinaryIO, layout: struct.Struct) -> Any:
    return layout.unpack(file.read(layout.size))[0]
