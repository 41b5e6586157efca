"""Files of models, read without loading the models: the metadata of GGUF files, and chat templates."""

import struct
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from cotrail.core.generation import Capability
from cotrail.engines.language_models.chat_template import ChatTemplate, template_lacks
from cotrail.errors import InputError

# Metadata of GGUF files: vocabulary, chat template and the like, read without the weights.
#
# The format is llama.cpp's (ggml, docs/gguf.md). The library gguf reads all of a file's tensors too, which takes
# seconds.

MAGIC = b"GGUF"
CONTROL, USER_DEFINED = 3, 4
"""The kinds of control tokens and of tokens that were added, in `tokenizer.ggml.token_type`."""

_NUMBERS = {
    kind: struct.Struct(f"<{code}")
    for kind, code in {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?"}.items()
} | {kind: struct.Struct(f"<{code}") for kind, code in {10: "Q", 11: "q", 12: "d"}.items()}
_STRING, _ARRAY = 8, 9
_TENSORS = ""
"""Under which the number of tensors stands among the values; no value has an empty name."""

_ALIGNMENT = 32
"""Of the tensors in bytes, where the file doesn't say."""

_UINT32, _UINT64 = _NUMBERS[4], _NUMBERS[10]


class GgufMetadata:
    """What a file says of its model. Raises InputError where it can't be read."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self._values = _read(file)
                _check_whole(file, path.stat().st_size, self._values)
        except OSError as error:
            raise InputError(f"the model file {path} can't be read: {error.strerror}") from error
        except (KeyError, ValueError, OverflowError, MemoryError, ZeroDivisionError, TypeError) as error:
            raise InputError(
                f"{path} is no GGUF file, or damaged: {error}; its path must be a model in that format, as model.gguf"
            ) from error

    @property
    def has_tokenizer(self) -> bool:
        """Return whether the file has its model's tokenizer, without which no text can be read."""
        return "tokenizer.ggml.model" in self._values

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


def check_gguf(path: Path) -> None:
    """Raises InputError where a file isn't a whole model with its tokenizer."""
    if not gguf_metadata(path).has_tokenizer:
        raise InputError(
            f"{path} holds no tokenizer (`tokenizer.ggml.model`), so that it can't read a text: take a file with the "
            "whole model; a part of one, as an adapter or a projector, is none"
        )


@lru_cache(maxsize=8)
def _metadata(path: Path, size: int, mtime_ns: int) -> GgufMetadata:  # noqa: ARG001 - a changed file is read again
    return GgufMetadata(path)


def _read(file: BinaryIO) -> dict[str, Any]:
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError(f"it doesn't begin with {MAGIC.decode()}")
    _number(file, _UINT32)  # the format's version
    tensors, count = _number(file, _UINT64), _number(file, _UINT64)
    values = {_string(file): _value(file, _number(file, _UINT32)) for _ in range(count)}
    return values | {_TENSORS: tensors}


def _check_whole(file: BinaryIO, size: int, values: dict[str, Any]) -> None:
    """Raises ValueError where the file ends before its last tensor begins; file: read up to its tensors' places."""
    last = -1
    for _ in range(values[_TENSORS]):
        _string(file)
        for _ in range(_number(file, _UINT32)):
            _number(file, _UINT64)
        _number(file, _UINT32)  # its type
        last = max(last, _number(file, _UINT64))
    alignment = values.get("general.alignment", _ALIGNMENT)
    begin = -(-file.tell() // alignment) * alignment
    if last >= 0 and size <= begin + last:
        raise ValueError("its tensors are cut off, as by a download that broke off")


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        return _number(file, _NUMBERS[kind])
    kind, count = _number(file, _UINT32), _number(file, _UINT64)
    return [_value(file, kind) for _ in range(count)]


def _string(file: BinaryIO) -> str:
    # Pieces of a vocabulary may end within a character.
    return _exactly(file, _number(file, _UINT64)).decode(errors="replace")


def _number(file: BinaryIO, layout: struct.Struct) -> Any:
    return layout.unpack(_exactly(file, layout.size))[0]


def _exactly(file: BinaryIO, size: int) -> bytes:
    if len(read := file.read(size)) < size:
        raise ValueError("it is cut off, as by a download that broke off")
    return read


# Chat templates in the files of models, which are read without loading the model.

TEMPLATE_FILE = "chat_template.jinja"


def template_source(path: Path) -> str | None:
    """The chat template of a folder saved by transformers or of a GGUF file; None where it has none.

    Of several templates with names it is the one named "default". Raises InputError where a file can't be read.
    """
    if not path.is_dir():
        return gguf_metadata(path).chat_template
    if (file := path / TEMPLATE_FILE).is_file():
        return _text(file)
    named = _settings(path / "tokenizer_config.json").get("chat_template")
    if isinstance(named, list):
        return next((each["template"] for each in named if each["name"] == "default"), None)
    return named


def check_template(path: Path) -> None:
    """Raises InputError where a model's chat template can't be read; a model without one passes."""
    source = template_source(path)
    if source is not None:
        try:
            ChatTemplate(source)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error


def gguf_template(path: Path, variables: Mapping[str, Any]) -> ChatTemplate | None:
    """The chat template of a GGUF file, with the control tokens of its vocabulary; None where it has none.

    variables: of the template, see `ChatTemplate`. Raises InputError where the file can't be read.
    """
    metadata = gguf_metadata(path)
    if metadata.chat_template is None:
        return None
    return ChatTemplate(metadata.chat_template, metadata.bos, metadata.eos, metadata.controls, variables)


def files_lack(path: Path, capability: Capability) -> str | None:
    """Why the model in a folder or a GGUF file lacks a capability, see `ModelEngine.lacks`.

    Raises as `template_source` does.
    """
    if capability not in ("scores", "sampling") and _settings(path / "config.json").get("is_encoder_decoder"):
        return "takes no conversations, since it has an encoder: take a decoder-only model that was tuned for chats"
    source = template_source(path)
    return template_lacks(None if source is None else ChatTemplate(source), capability)


def _settings(file: Path) -> dict[str, Any]:
    """The JSON of a file; nothing where there is none, as with a GGUF file."""
    try:
        return msgspec.json.decode(_text(file), type=dict[str, Any]) if file.is_file() else {}
    except msgspec.DecodeError as error:
        raise InputError(f"the model's file {file} can't be read: {error}") from error


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the model's file {file} can't be read: {error}") from error
