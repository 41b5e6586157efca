"""Loads models from files: a folder saved by transformers, or a GGUF file."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from msgspec import Struct
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.utils import logging

from cotrail.engines.language_models.chat_template import ChatTemplate
from cotrail.engines.language_models.template_files import template_source
from cotrail.engines.language_models.transformers.vocabulary import Vocabulary
from cotrail.engines.model_folders import loading
from cotrail.errors import InputError


class Loaded(Struct, frozen=True):
    """A loaded model, its vocabulary, and its chat template if it has one."""

    model: Any
    vocabulary: Vocabulary
    template: ChatTemplate | None = None
    template_source: str | None = None

    @property
    def encoder_decoder(self) -> bool:
        """Return whether an encoder reads the prompt, as in T5; the context then counts the prompt alone."""
        return bool(self.model.config.is_encoder_decoder)


def load(path: Path, variables: Mapping[str, Any] = MappingProxyType({})) -> Loaded:
    """Loads a model onto a CUDA device in bfloat16, or onto the CPU in float32 where there is none.

    variables: of its template, see `ChatTemplate`. Raises InputError, NotInstalledError.
    """
    logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
    where: dict[str, Any] = {"pretrained_model_name_or_path": path, "local_files_only": True}
    if path.is_file():
        where |= {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    with loading("transformers", path):
        tokenizer = AutoTokenizer.from_pretrained(**where)
        model = _model(where)
    # `Vocabulary` uses the tokenizer of tokenizers' Rust library, which a slow one doesn't have.
    if not tokenizer.is_fast:
        raise InputError(f"{path} has no tokenizer.json: load and save its tokenizer once with transformers 5")
    vocabulary = Vocabulary(tokenizer, _ends(model, tokenizer))
    # From the files, as whoever submits a run reads it: transformers makes another choice of several templates.
    source = template_source(path)
    if source is None:
        return Loaded(model, vocabulary, None)
    template = ChatTemplate(source, vocabulary.bos, vocabulary.eos, vocabulary.controls, variables)
    return Loaded(model, vocabulary, template, source)


def _model(where: dict[str, Any]) -> Any:
    # bfloat16 halves the memory that each token reads; many CPUs have no fast kernels for it.
    device, dtype = ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
    config = AutoConfig.from_pretrained(**where)
    kind: Any = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    return kind.from_pretrained(**where, dtype=dtype).to(device).eval()


# Chat models often name an end of text of their own in either of the two places.
def _ends(model: Any, tokenizer: Any) -> set[int]:
    named = model.generation_config.eos_token_id
    ids = named if isinstance(named, list) else [named]
    return {token for token in [*ids, tokenizer.eos_token_id] if token is not None}
