"""Small chat models that have learned what they write, with thoughts between marks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from msgspec import Struct
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

TEMPLATE = """
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.reasoning_content %}{{- '<think>' + message.reasoning_content + '</think>' }}{%- endif %}
    {{- message.content }}
    {%- for call in message.tool_calls %}{{- '<tool_call>' + call.function | tojson + '</tool_call>' }}{%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and not enable_thinking %}{{- '<think></think>' }}{%- endif %}
    {%- if opens %}{{- '<think>' }}{%- endif %}
{%- endif %}{# {{ tools }} #}{%- if false %}{{- tools }}{%- endif %}"""
"""A template as those of models that think: `enable_thinking` turns it off, `opens` puts the opening mark."""

CONTROLS = ["</s>", "<|im_start|>", "<|im_end|>"]
END, TURN_END = 0, 2


class Exchange(Struct, frozen=True):
    """What a user asks, and what the model has learned to write to it behind its header."""

    asked: str
    written: str

    @property
    def text(self) -> str:
        return f"<|im_start|>user\n{self.asked}<|im_end|>\n<|im_start|>assistant\n{self.written}<|im_end|>\n"


def learn(folder: Path, exchanges: Sequence[Exchange], *, marks_are_controls: bool = False, steps: int = 220) -> Path:
    """Saves a model that has learned the exchanges by heart.

    marks_are_controls: whether the marks are control tokens of its vocabulary.
    """
    logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
    torch.manual_seed(3)
    tokenizer = _tokenizer([each.text for each in exchanges], marks_are_controls=marks_are_controls)
    wrapped: Any = PreTrainedTokenizerFast
    wrapped(tokenizer_object=tokenizer, eos_token="</s>", chat_template=TEMPLATE).save_pretrained(folder)
    model = _model(tokenizer.get_vocab_size())
    texts = [tokenizer.encode(each.text).ids for each in exchanges]
    width = max(map(len, texts))
    ids = torch.tensor([text + [END] * (width - len(text)) for text in texts])
    labels = ids.masked_fill(torch.arange(width) >= torch.tensor([[len(text)] for text in texts]), -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    return folder


def _tokenizer(texts: Sequence[str], *, marks_are_controls: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=CONTROLS, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    marks: list[Any] = [AddedToken(mark, special=marks_are_controls) for mark in ("<think>", "</think>")]
    tokenizer.add_special_tokens(marks) if marks_are_controls else tokenizer.add_tokens(marks)
    return tokenizer


def _model(vocabulary: int) -> LlamaForCausalLM:
    sizes: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    heads: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 1024}
    ends: dict[str, Any] = {"eos_token_id": [END, TURN_END], "bos_token_id": None, "pad_token_id": END}
    return LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, **sizes, **heads, **ends))
