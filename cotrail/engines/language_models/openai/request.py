"""Request bodies."""

from typing import Any

from cotrail.core.generation import Sampling, Until
from cotrail.engines.language_models.endpoint import Api, Endpoint
from cotrail.engines.language_models.openai.tokenizer import Dialect
from cotrail.engines.language_models.stop_conditions import STOP_STRINGS

PATHS: dict[Api, str] = {"completions": "/completions", "chat": "/chat/completions"}

INSTRUCTION = "Continue the text below. Write only what comes next, and repeat nothing of it."
"""Beginning of the only message of a chat: a chat model would otherwise answer the whole prompt instead of continuing
it."""

CHAT_TOKENS = 128
"""Tokens of the context that are reserved for the chat template and the instruction."""

_DIALECTS: dict[Dialect, dict[str, Any]] = {
    "openai": {},
    "llama.cpp": {"samplers": ["temperature"], "cache_prompt": True, "timings_per_token": True},
    # Without these vLLM applies the sampling that the model's authors recommend, which changes even greedy texts.
    "vllm": {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
}
"""Fields by dialect: temperature alone decides the sampling, and a stream that is cut off has reported its tokens
before."""


def completion_request(
    endpoint: Endpoint, dialect: Dialect, prompt: str, until: Until, max_tokens: int, sampling: Sampling
) -> dict[str, Any]:
    """The body that asks for a continuation, as a stream."""
    # A chat message may open with line breaks, which are layout and don't end the line: the stream is watched instead.
    stops = () if endpoint.api == "chat" and until == "line" else STOP_STRINGS[until]
    return {
        "model": endpoint.model,
        **_asked(endpoint.api, prompt),
        "max_tokens": max_tokens,
        "temperature": sampling.temperature,
        "top_p": 1.0,
        "seed": sampling.seed,
        "stream": True,
        "stream_options": {"include_usage": True} | ({"continuous_usage_stats": True} if dialect == "vllm" else {}),
        **({"stop": list(stops)} if stops else {}),
        **_DIALECTS[dialect],
    }


def tokenizer_request(endpoint: Endpoint, text: str) -> dict[str, Any]:
    """The body that asks for a text's tokens, in vLLM's fields and in llama.cpp's; each ignores the other's."""
    return {"model": endpoint.model, "prompt": text, "content": text, "add_special": True}


def reserved_tokens(api: Api) -> int:
    """Tokens of the context that something other than the prompt takes."""
    return CHAT_TOKENS if api == "chat" else 0


def _asked(api: Api, prompt: str) -> dict[str, Any]:
    if api == "completions":
        return {"prompt": prompt}
    return {"messages": [{"role": "user", "content": f"{INSTRUCTION}\n\n{prompt}"}]}
