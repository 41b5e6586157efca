"""Small chat models that have learned what they write, with thoughts between marks."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tests.cache import digest, kept, of_packages

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import LlamaForCausalLM

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


def taught(name: str, exchanges: Sequence[Exchange], *, steps: int = 120) -> Path:
    """Two folders of a model that has learned the exchanges by heart, made once.

    In `words` the marks are words of its vocabulary like others, in `controls` they are control tokens.
    """
    packages = of_packages("torch", "transformers", "tokenizers")
    return kept(name, digest(Path(__file__), exchanges, steps, packages), partial(_learn, exchanges, steps))


def _learn(exchanges: Sequence[Exchange], steps: int, folder: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    texts = [each.text for each in exchanges]
    wrapped: Any = PreTrainedTokenizerFast
    tokenizers = {kind: _tokenizer(texts, marks_are_controls=kind == "controls") for kind in ("words", "controls")}
    model = _trained(
        [tokenizers["words"].encode(each).ids for each in texts], tokenizers["words"].get_vocab_size(), steps
    )
    for kind, tokenizer in tokenizers.items():
        wrapped(tokenizer_object=tokenizer, eos_token="</s>", chat_template=TEMPLATE).save_pretrained(folder / kind)
        model.save_pretrained(folder / kind)


def _trained(texts: Sequence[Sequence[int]], vocabulary: int, steps: int) -> "LlamaForCausalLM":
    import torch

    torch.manual_seed(3)
    model = _model(vocabulary)
    width = max(map(len, texts))
    ids = torch.tensor([[*text, *[END] * (width - len(text))] for text in texts])
    labels = ids.masked_fill(torch.arange(width) >= torch.tensor([[len(text)] for text in texts]), -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
    return model


def _tokenizer(texts: Sequence[str], *, marks_are_controls: bool) -> "Tokenizer":
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

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


def _model(vocabulary: int) -> "LlamaForCausalLM":
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    heads: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 1024}
    ends: dict[str, Any] = {"eos_token_id": [END, TURN_END], "bos_token_id": None, "pad_token_id": END}
    return LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, **sizes, **heads, **ends))
