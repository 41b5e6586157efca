"""Small readers of texts with random weights, and what holds for each of them (entailment, extraction, rating)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cotrail.engines.model_folders import METADATA
from cotrail.errors import TransientStepError

SPECIAL = ["[CLS]", "[PAD]", "[SEP]", "[UNK]"]  # padding as RoBERTa has it, whose places begin behind it
WORDS = ["the", "river", "flows", "into", "a", "sea", "of", "salt", "where", "old", "boats", "carry", "stone", "north"]
LONGEST = 48

SIZES: dict[str, Any] = {
    "vocab_size": len(SPECIAL) + len(WORDS),
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "pad_token_id": 1,
    "max_position_embeddings": LONGEST,
    "num_labels": 3,
}
ROBERTA = SIZES | {"type_vocab_size": 1, "max_position_embeddings": LONGEST + 2}
NUMBERS = {word: number for number, word in enumerate(SPECIAL + WORDS)}


def small(name: str, **sizes: Any) -> Any:
    """A model by its name in transformers, with random weights."""
    import transformers

    kind = getattr(transformers, name)
    return kind(kind.config_class(**sizes))


def tokenizer(kind: str) -> Any:
    """Words; like ALBERT's and RoBERTa's own, it doesn't tell premise and hypothesis apart unless it is asked to."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordLevel({word: n for n, word in enumerate(SPECIAL + WORDS)}, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", special_tokens=[("[CLS]", 0), ("[SEP]", 2)]
    )
    fast: Any = PreTrainedTokenizerFast
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if kind == "bert" else [])]
    return fast(tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", model_input_names=names)


def saved(path: Path, model: Any, words: Any) -> Path:
    """A folder of this model, whose weights are as far apart as trained ones: else all answers would be alike."""
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
    torch.manual_seed(7)
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.5)
    model.save_pretrained(path)
    words.save_pretrained(path)
    return path


def colbert(folder: Path, **trained: Any) -> Path:
    """As ColBERTv2's checkpoint is: BERT with a projection, and a file of how it was trained."""
    from transformers import BertConfig

    from cotrail.engines.rating.late_interaction import ColBert

    folder.mkdir(parents=True, exist_ok=True)
    settings = {"dim": 8, "query_maxlen": 12, "doc_maxlen": 20, "query_token_id": "[UNK]", "doc_token_id": "salt"}
    (folder / METADATA).write_bytes(msgspec.json.encode(settings | trained | {"checkpoint": "colbert-ir/colbertv2.0"}))
    words = tokenizer("bert")
    words.mask_token = "north"
    words.model_max_length = LONGEST
    return saved(folder, ColBert(BertConfig(**SIZES, name_or_path=str(folder))), words)


def several_passes(
    model: Any, run: Callable[[], list[Any]], close: Callable[[list[Any]], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What doesn't fit memory in one pass is read in several; what doesn't fit at all fails and may be tried again."""
    import torch

    forward, most = model.forward, [2]

    def cramped(**inputs: Any) -> Any:
        if len(inputs["input_ids"]) > most[0]:
            raise torch.OutOfMemoryError
        return forward(**inputs)

    monkeypatch.setattr(model, "forward", cramped)
    assert close(run())
    most[0] = 0
    with pytest.raises(TransientStepError, match="too little memory"):
        run()


def broken(path: Path) -> Path:
    """A folder that no library can load."""
    (path / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    (path / "tokenizer.json").write_text("{}")
    (path / "config.json").write_text('{"model_type": "bert"}')
    return path
