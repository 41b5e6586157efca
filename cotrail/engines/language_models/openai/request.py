"""What is sent to the server."""

from typing import Any

from cotrail.core.generation import Sampling, Until
from cotrail.engines.language_models.endpoint import Api, Endpoint
from cotrail.engines.language_models.openai.tokenizer import Dialect
from cotrail.engines.language_models.stop_conditions import STOP_STRINGS

PATHS: dict[Api, str] = {"completions": "/completions", "chat": "/chat/completions"}

INSTRUCTION = "Continue the text below. Write only what comes next, and repeat nothing of it."
"""What a chat's only message begins with: such a model would answer the whole prompt instead of going on."""

CHAT_TOKENS = 128
"""Tokens of the context that a chat's template and the instruction are allowed."""

_DIALECTS: dict[Dialect, dict[str, Any]] = {
    "openai": {},
    "llama.cpp": {"samplers": ["temperature"], "cache_prompt": True, "timings_per_token": True},
    # Without these vLLM takes the sampling that the model's authors recommend, which changes even greedy texts.
    "vllm": {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
}
"""Temperature alone is to decide what is drawn; and where a stream is cut off, it is to have said its tokens."""


def completion_request(
    endpoint: Endpoint, dialect: Dialect, prompt: str, until: Until, max_tokens: int, sampling: Sampling
) -> dict[str, Any]:
    """The body that asks for a continuation, as a stream."""
    # What opens a chat's message is layout, so that a line break there is no end: the stream is watched for it.
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
    """The body that asks for a text's tokens: in vLLM's words, and in llama.cpp's; each ignores the other's."""
    return {"model": endpoint.model, "prompt": text, "content": text, "add_special": True}


def reserved_tokens(api: Api) -> int:
    """How many tokens of the context something other than the prompt takes."""
    return CHAT_TOKENS if api == "chat" else 0


def _asked(api: Api, prompt: str) -> dict[str, Any]:
    if api == "completions":
        return {"prompt": prompt}
    return {"messages": [{"role": "user", "content": f"{INSTRUCTION}\n\n{prompt}"}]}
