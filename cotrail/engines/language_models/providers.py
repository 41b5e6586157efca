"""Providers whose models need no table: `--model openai/gpt-5.1`, `anthropic/claude-sonnet-4-6` and so on.

As of November 2026, from the providers' documentation; none of them was asked. A table of `models.toml` with the same
name comes first, and is where a model that needs other settings gets them.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

CONTEXT = 128_000
"""Tokens of a prompt and its continuation, which nearly all models of today take."""

THOUGHT_TOKENS = 8_000
"""The most tokens of a thought."""


class Family(Struct, frozen=True, kw_only=True):
    """Models whose names begin in one of these ways, and the fields of their tables."""

    names: tuple[str, ...]
    table: Mapping[str, Any]


class Provider(Struct, frozen=True, kw_only=True):
    """A provider: the fields of its models' tables, and families of them that need further ones."""

    table: Mapping[str, Any]
    families: tuple[Family, ...] = ()

    def of(self, model: str) -> dict[str, Any]:
        """The table of a model."""
        found = next((each for each in self.families if model.startswith(each.names)), None)
        thoughts = {"thought_tokens": THOUGHT_TOKENS} if found and "thinks" in found.table else {}
        return {"model": model, "context": CONTEXT, **self.table, **(found.table if found else {}), **thoughts}


def _chat(url: str, key_variable: str | None, **more: Any) -> dict[str, Any]:
    key = {"key_variable": key_variable} if key_variable else {}
    return {"engine": "openai", "url": url, "api": "chat", **key, **more}


_THINKS = {"thinks": "field"}
_THINKS_ON = {**_THINKS, "hands_back": "all"}
"""For models that want the thoughts of former turns too, or write worse without them."""

PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        table=_chat("https://api.openai.com/v1", "OPENAI_API_KEY", batch="openai"),
        families=(Family(names=("o1", "o3", "o4", "gpt-5", "gpt-6"), table={"api": "responses", "thinks": "hidden"}),),
    ),
    "anthropic": Provider(table={"engine": "anthropic", "batch": "anthropic"}),
    "gemini": Provider(
        table={"engine": "gemini"},
        families=(Family(names=("gemini-2.5", "gemini-3"), table=_THINKS),),
    ),
    "mistral": Provider(
        table=_chat(
            "https://api.mistral.ai/v1",
            "MISTRAL_API_KEY",
            continues="prefix",
            omits=["seed", "stream_options"],
            batch="mistral",
        ),
        families=(Family(names=("magistral",), table=_THINKS_ON),),
    ),
    "deepseek": Provider(
        table=_chat("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", **_THINKS_ON, thought_tokens=THOUGHT_TOKENS)
    ),
    "openrouter": Provider(table=_chat("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY")),
    "together": Provider(table=_chat("https://api.together.xyz/v1", "TOGETHER_API_KEY")),
    "fireworks": Provider(table=_chat("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY")),
    "groq": Provider(table=_chat("https://api.groq.com/openai/v1", "GROQ_API_KEY")),
    "xai": Provider(
        table=_chat("https://api.x.ai/v1", "XAI_API_KEY"),
        families=(Family(names=("grok-3-mini", "grok-4", "grok-5"), table=_THINKS),),
    ),
    "ollama": Provider(table=_chat("http://localhost:11434/v1", None)),
}
"""All providers by name."""


def provided(name: str) -> dict[str, Any] | None:
    """The table of a model that is named PROVIDER/MODEL; None for another name."""
    provider, _, model = name.partition("/")
    return PROVIDERS[provider].of(model) if provider in PROVIDERS and model else None
