"""Gemini's `generateContent`."""

from itertools import groupby
from typing import Any

import msgspec

from cotrail.core.calls import Call, Tool
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.engines.language_models.endpoint import Endpoint, Omitted
from cotrail.engines.language_models.served.conversation import Said, arguments_of, conversation
from cotrail.engines.language_models.served.protocols.gemini_answers import ContentReader
from cotrail.engines.language_models.served.request import Order, completed, told_stops

MOST_STOPS = 5
"""The most stop sequences that the API takes."""

Part = dict[str, Any]


class Gemini:
    """See `WireProtocol`."""

    has_tokenizer = False
    never_sent: frozenset[Omitted] = frozenset({"logprobs", "stream_options"})

    def path(self, endpoint: Endpoint, *, streams: bool) -> str:
        """See `WireProtocol`."""
        method = "streamGenerateContent?alt=sse" if streams else "generateContent"
        return f"/models/{endpoint.model}:{method}"

    def headers(self, key: str) -> dict[str, str]:
        """See `WireProtocol`."""
        return {"x-goog-api-key": key} if key else {}

    def stop_strings(self, endpoint: Endpoint, request: GenerationRequest) -> tuple[str, ...]:
        """See `WireProtocol`."""
        return told_stops(endpoint, request)[:MOST_STOPS]

    def body(self, order: Order) -> dict[str, Any]:
        """See `WireProtocol`."""
        said = conversation(order.prompt)
        system = [each.whole for each in said if each.role == "system"]
        others = [each for each in said if each.role != "system"]
        tools = [_declared(tool) for tool in order.prompt.tools]
        fields = {
            **({"systemInstruction": {"parts": [{"text": text} for text in system]}} if system else {}),
            "contents": _contents(others),
            **({"tools": [{"functionDeclarations": tools}]} if tools else {}),
            "generationConfig": self._config(order),
        }
        return completed(order.endpoint, fields)

    def reader(self) -> ContentReader:
        """See `WireProtocol`."""
        return ContentReader()

    def _config(self, order: Order) -> dict[str, Any]:
        endpoint, request = order.endpoint, order.request
        stops, sampling = self.stop_strings(endpoint, request), request.sampling
        settings = {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": sampling.seed}
        taken = {_NAMES.get(name, name): value for name, value in settings.items() if name not in endpoint.omits}
        return {
            (endpoint.limit_field or "maxOutputTokens"): request.max_tokens,
            **taken,
            **({"stopSequences": list(stops)} if stops else {}),
            **_thinking(endpoint),
            **_format(request),
        }


_NAMES = {"top_p": "topP"}


def _thinking(endpoint: Endpoint) -> dict[str, Any]:
    if not endpoint.thinking.may_think:
        return {}
    amount: dict[str, Any] = {}
    if endpoint.effort:
        amount = {"thinkingLevel": endpoint.effort}
    elif endpoint.thought_tokens:
        amount = {"thinkingBudget": endpoint.thought_tokens}
    return {"thinkingConfig": {"includeThoughts": True, **amount}}


def _format(request: GenerationRequest) -> dict[str, Any]:
    if request.choices:
        words = {"type": "STRING", "enum": list(request.choices)}
        return {"responseMimeType": "text/x.enum", "responseSchema": words}
    if not request.schema:
        return {}
    return {"responseMimeType": "application/json", "responseJsonSchema": msgspec.json.decode(request.schema)}


def _declared(tool: Tool) -> Part:
    parameters = msgspec.json.decode(tool.parameters)
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": parameters}


def _contents(said: list[Said]) -> list[dict[str, Any]]:
    """The contents: neighbours of one role are one, as the answers to calls that were made together have to be."""
    grouped = groupby(said, key=lambda each: "model" if each.role == "assistant" else "user")
    return [{"role": role, "parts": [part for each in group for part in _parts(each)]} for role, group in grouped]


def _parts(said: Said) -> list[Part]:
    if said.answers is not None:
        return [{"functionResponse": {"name": said.answers.name, "response": {"result": said.whole}}}]
    signatures = said.carried.get("signatures", {})
    text = [{"text": said.whole} | _signed(signatures.get("text"))] if said.whole else []
    of_calls = [*signatures.get("calls", ()), *[None] * len(said.calls)]
    return [*text, *(_called(call) | _signed(of_calls[place]) for place, call in enumerate(said.calls))]


def _called(call: Call) -> Part:
    return {"functionCall": {"name": call.name, "args": arguments_of(call)}}


def _signed(signature: str | None) -> Part:
    return {"thoughtSignature": signature} if signature else {}
