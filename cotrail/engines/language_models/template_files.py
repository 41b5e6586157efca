"""Chat templates in the files of models, which are read without loading the model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from cotrail.core.generation import Capability
from cotrail.engines.language_models.chat_template import ChatTemplate, template_lacks
from cotrail.engines.language_models.gguf_metadata import gguf_metadata
from cotrail.errors import InputError

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
    """The JSON of a file; nothing where there is none, as beside a GGUF file."""
    try:
        return msgspec.json.decode(_text(file), type=dict[str, Any]) if file.is_file() else {}
    except msgspec.DecodeError as error:
        raise InputError(f"the model's file {file} can't be read: {error}") from error


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the model's file {file} can't be read: {error}") from error
