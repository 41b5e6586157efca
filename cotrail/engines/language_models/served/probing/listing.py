"""What a server says of its models: their names, and how many tokens they take."""

import asyncio
from contextlib import aclosing
from typing import Any

from msgspec import Struct

from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.client import ServerClient
from cotrail.engines.language_models.served.protocols.registry import PROTOCOLS

_CONTEXTS = (
    "max_model_len",  # vLLM, SGLang
    "context_length",  # OpenRouter, Together
    "max_context_length",  # Mistral
    "context_window",  # Groq
    "max_input_tokens",  # Anthropic
    "inputTokenLimit",  # Gemini
)


class ListedModel(Struct, frozen=True):
    """A model of a server; context: in tokens, 0 where it isn't said."""

    name: str
    context: int


def listed_models(endpoint: Endpoint) -> list[ListedModel]:
    """The models that a server lists; none where it doesn't answer. Raises BlockedError where its key isn't set."""
    return [each for each in map(_model, asyncio.run(_listing(endpoint))) if each.name]


async def _listing(endpoint: Endpoint) -> list[dict[str, Any]]:
    async with aclosing(ServerClient(endpoint, PROTOCOLS[endpoint.api].headers)) as client:
        return await client.listing()


def _model(said: dict[str, Any]) -> ListedModel:
    name = said.get("id") or str(said.get("name") or "").removeprefix("models/")
    contexts = (said.get(key) for key in _CONTEXTS)
    context = next((each for each in contexts if isinstance(each, int) and each > 0), 0)
    return ListedModel(name=name if isinstance(name, str) else "", context=context)
