"""Models of real size with random weights, and prompts of IRCoT's length made of random tokens."""

import random
from collections.abc import Sequence
from typing import Any

import torch
from msgspec import Struct
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, LlamaConfig, T5Config

PARAGRAPHS_A_STEP, MOST_PARAGRAPHS = 4, 15
SENTENCES = 4
"""Sentences of a chain, before the reader's answer."""

PARAGRAPH, QUESTION = 120, 25
"""Mean tokens of each."""

SENTENCE, SHORTEST, LONGEST = 25, 6, 60
"""Tokens of a sentence: mean, minimum, maximum."""

ANSWER = 2.0
"""Length of the reader's answer, in sentences."""

SPREAD = 0.3
"""Standard deviation of all lengths, relative to their mean."""


class ModelShape(Struct, frozen=True):
    """A model's configuration, and the tokens of the demonstrations in its prompts.

    scale: factor of all lengths of prompts.
    """

    config: Any
    demonstrations: int
    scale: float = 1.0

    @property
    def context(self) -> int:
        """Context length that holds any prompt and its continuation."""
        own = MOST_PARAGRAPHS * PARAGRAPH * (1 + SPREAD) + 2 * QUESTION + (SENTENCES + ANSWER) * LONGEST
        return self._scaled(self.demonstrations + own) + int(ANSWER * LONGEST) + 200

    def model(self, device: str) -> Any:
        """A model of this shape with random weights: bfloat16 on CUDA, float32 on a CPU."""
        kind: Any = AutoModelForSeq2SeqLM if self.config.is_encoder_decoder else AutoModelForCausalLM
        torch.manual_seed(0)
        with torch.device(device):
            made = kind.from_config(self.config, dtype=torch.bfloat16 if device == "cuda" else torch.float32)
        return made.eval()

    def questions(self, count: int, seed: int = 1) -> list[list["MadeUpPrompt"]]:
        """The prompts of `count` questions, each question's in the order of its steps."""
        chance = random.Random(seed)
        shared = self._text(chance, self.demonstrations)
        return [self._question(chance, shared) for _ in range(count)]

    def _question(self, chance: random.Random, shared: list[int]) -> list["MadeUpPrompt"]:
        paragraphs = [self._text(chance, _near(chance, PARAGRAPH)) for _ in range(MOST_PARAGRAPHS)]
        question = self._text(chance, _near(chance, QUESTION))
        sentences = [self._text(chance, _sentence(chance)) for _ in range(SENTENCES)]
        asked = []
        for step in range(SENTENCES):
            seen = paragraphs[: PARAGRAPHS_A_STEP * (step + 1)]
            asked.append(MadeUpPrompt(_joined(shared, *seen, question, *sentences[:step]), _sentence(chance)))
        answer = int(ANSWER * _sentence(chance))
        return [*asked, MadeUpPrompt(_joined(shared, *paragraphs, question), answer)]

    def _text(self, chance: random.Random, tokens: int) -> list[int]:
        return [chance.randrange(3, self.config.vocab_size) for _ in range(self._scaled(tokens))]

    def _scaled(self, tokens: float) -> int:
        return max(1, int(tokens * self.scale))


class MadeUpPrompt(Struct, frozen=True):
    """A prompt of random tokens; length: the number of tokens to write after it."""

    tokens: list[int]
    length: int


def _near(chance: random.Random, mean: int) -> int:
    spread = mean * SPREAD
    return int(min(max(chance.gauss(mean, spread), mean - spread), mean + spread))


def _sentence(chance: random.Random) -> int:
    return int(min(max(chance.gauss(SENTENCE, SENTENCE * SPREAD), SHORTEST), LONGEST))


def _joined(*texts: Sequence[int]) -> list[int]:
    return [token for text in texts for token in text]


FLAN_T5_XL: dict[str, Any] = {
    "vocab_size": 32_128,
    "d_model": 2048,
    "d_kv": 64,
    "d_ff": 5120,
    "num_layers": 24,
    "num_heads": 32,
    "feed_forward_proj": "gated-gelu",
    "tie_word_embeddings": False,
    "decoder_start_token_id": 0,
}
LLAMA_3_2_3B: dict[str, Any] = {
    "vocab_size": 128_256,
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 28,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 131_072,
    "tie_word_embeddings": True,
    "pad_token_id": 0,
}
TINY_T5 = {**FLAN_T5_XL, "vocab_size": 500, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
TINY_LLAMA = {
    **LLAMA_3_2_3B,
    "vocab_size": 500,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
}

SHAPES = {
    "full": {
        "flan-t5-xl": ModelShape(T5Config(**FLAN_T5_XL), 4500),
        "llama-3.2-3b": ModelShape(LlamaConfig(**LLAMA_3_2_3B), 3000),
    },
    "tiny": {
        "tiny-t5": ModelShape(T5Config(**TINY_T5), 4500, 0.05),
        "tiny-llama": ModelShape(LlamaConfig(**TINY_LLAMA), 3000, 0.05),
    },
}
"""Groups of shapes: `full` for a GPU, `tiny` for a trial without one."""
