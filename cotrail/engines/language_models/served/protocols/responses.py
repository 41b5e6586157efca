"""OpenAI's responses."""

import hashlib
from typing import Any

import msgspec

from cotrail.core.calls import Tool
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt
from cotrail.engines.language_models.endpoint import Endpoint, Omitted
from cotrail.engines.language_models.served.conversation import Said, call_id, conversation
from cotrail.engines.language_models.served.protocols.bearer import bearer
from cotrail.engines.language_models.served.protocols.responses_answers import ResponseReader
from cotrail.engines.language_models.served.request import Order, completed
from cotrail.engines.language_models.served.structure import json_schema_format

ENCRYPTED = "reasoning.encrypted_content"
"""What the API is to include, so that thoughts can be handed back though nothing is stored there."""

_KEY_DIGITS = 32

Item = dict[str, Any]


class Responses:
    """See `WireProtocol`."""

    has_tokenizer = False
    never_sent: frozenset[Omitted] = frozenset({"seed", "stop", "logprobs", "stream_options"})

    def path(self, endpoint: Endpoint, *, streams: bool) -> str:  # noqa: ARG002 - always the same
        """See `WireProtocol`."""
        return "/responses"

    def headers(self, key: str) -> dict[str, str]:
        """See `WireProtocol`."""
        return bearer(key)

    def stop_strings(self, endpoint: Endpoint, request: GenerationRequest) -> tuple[str, ...]:  # noqa: ARG002 - none
        """See `WireProtocol`: the API has none."""
        return ()

    def body(self, order: Order) -> dict[str, Any]:
        """See `WireProtocol`."""
        endpoint, request = order.endpoint, order.request
        fields = {
            "model": endpoint.model,
            "input": [item for said in conversation(order.prompt) for item in _items(said)],
            (endpoint.limit_field or "max_output_tokens"): request.max_tokens,
            # What a run asks is kept by cotrail, and nowhere else.
            "store": False,
            **({"stream": True} if order.streams else {}),
            **({"tools": [_tool(tool) for tool in order.prompt.tools]} if order.prompt.tools else {}),
            **_thinking(order),
            **_format(request),
            **_cache_key(order.prompt),
        }
        return completed(endpoint, fields)

    def reader(self) -> ResponseReader:
        """See `WireProtocol`."""
        return ResponseReader()


def _thinking(order: Order) -> dict[str, Any]:
    """How much the model is to think, or the sampling, which a model that thinks refuses."""
    endpoint, sampling = order.endpoint, order.request.sampling
    effort = {"reasoning": {"effort": endpoint.effort}} if endpoint.effort else {}
    if endpoint.thinking.may_think:
        return {"include": [ENCRYPTED], **effort}
    return {"temperature": sampling.temperature, "top_p": sampling.top_p, **effort}


def _format(request: GenerationRequest) -> dict[str, Any]:
    if not request.schema:
        return {}
    return {"text": {"format": {"type": "json_schema", **json_schema_format(msgspec.json.decode(request.schema))}}}


def _cache_key(prompt: Prompt) -> dict[str, Any]:
    """Requests of one key reach the same cache: those that begin with the same demonstrations, say."""
    if not prompt.shared:
        return {}
    return {"prompt_cache_key": hashlib.sha256(prompt.shared.encode()).hexdigest()[:_KEY_DIGITS]}


def _tool(tool: Tool) -> Item:
    parameters = msgspec.json.decode(tool.parameters)
    described = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "strict": False, **described}


def _items(said: Said) -> list[Item]:
    if said.answers is not None:
        return [{"type": "function_call_output", "call_id": call_id(said.answers), "output": said.whole}]
    message = [{"role": said.role, "content": said.whole}] if said.whole else []
    calls = [
        {"type": "function_call", "call_id": call_id(call), "name": call.name, "arguments": call.arguments}
        for call in said.calls
    ]
    return [*said.carried.get("items", ()), *message, *calls]
