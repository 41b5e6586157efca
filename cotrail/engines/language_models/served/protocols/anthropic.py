"""Anthropic's messages."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import msgspec

from cotrail.core.calls import Call, Tool
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.engines.language_models.endpoint import LEAST_BUDGET, Endpoint, Omitted
from cotrail.engines.language_models.served.conversation import Said, arguments_of, call_id, conversation
from cotrail.engines.language_models.served.protocols.anthropic_answers import THOUGHTS, MessageReader
from cotrail.engines.language_models.served.request import Order, completed, told_stops
from cotrail.errors import StepError

VERSION = "2023-06-01"
"""Version of the API."""

_CACHED = {"cache_control": {"type": "ephemeral"}}

Block = dict[str, Any]


class AnthropicMessages:
    """See `WireProtocol`."""

    has_tokenizer = False
    never_sent: frozenset[Omitted] = frozenset({"seed", "logprobs", "stream_options"})

    def path(self, endpoint: Endpoint, *, streams: bool) -> str:  # noqa: ARG002 - always the same
        """See `WireProtocol`."""
        return "/messages"

    def headers(self, key: str) -> dict[str, str]:
        """See `WireProtocol`."""
        return {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})

    def stop_strings(self, endpoint: Endpoint, request: GenerationRequest) -> tuple[str, ...]:
        """See `WireProtocol`."""
        # The API refuses stop sequences of white space alone.
        return tuple(stop for stop in told_stops(endpoint, request) if stop.strip())

    def body(self, order: Order) -> dict[str, Any]:
        """See `WireProtocol`."""
        endpoint, request = order.endpoint, order.request
        stops = self.stop_strings(endpoint, request)
        said = conversation(order.prompt)
        system = [each for each in said if each.role == "system"]
        others = [each for each in said if each.role != "system"]
        fields = {
            "model": endpoint.model,
            (endpoint.limit_field or "max_tokens"): request.max_tokens,
            **({"system": _system(system)} if system else {}),
            "messages": _messages(others),
            **({"tools": [_tool(tool) for tool in order.prompt.tools]} if order.prompt.tools else {}),
            **({"stop_sequences": list(stops)} if stops else {}),
            **({"stream": True} if order.streams else {}),
            **_sampling(order),
            **_thinking(order),
            **_output(endpoint, request),
        }
        return completed(endpoint, fields)

    def reader(self) -> MessageReader:
        """See `WireProtocol`."""
        return MessageReader()


def _sampling(order: Order) -> dict[str, Any]:
    """The sampling, which a model that thinks refuses."""
    sampling = order.request.sampling
    if order.endpoint.thinking.may_think:
        return {}
    # Newer models refuse both at once, even where one of them changes nothing.
    top_p = {"top_p": sampling.top_p} if sampling.top_p < 1 else {}
    return top_p if top_p and sampling.temperature == 1 else {"temperature": sampling.temperature} | top_p


def _thinking(order: Order) -> dict[str, Any]:
    endpoint = order.endpoint
    if not endpoint.thinking.may_think:
        return {}
    if endpoint.effort or not endpoint.thought_tokens:
        return {"thinking": {"type": "adaptive"}}
    # The API wants a budget below the limit of thought and text together, which a long prompt may have lowered.
    budget = min(endpoint.thought_tokens, order.request.max_tokens - 1)
    if budget < LEAST_BUDGET:
        raise StepError(
            f"the prompt leaves {order.request.max_tokens:,} tokens of the context, and a thought needs "
            f"{LEAST_BUDGET:,} besides the text: take a model with a longer context, or shorter prompts"
        )
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _output(endpoint: Endpoint, request: GenerationRequest) -> dict[str, Any]:
    output: dict[str, Any] = {"effort": endpoint.effort} if endpoint.effort else {}
    if request.schema:
        output["format"] = {"type": "json_schema", "schema": msgspec.json.decode(request.schema)}
    return {"output_config": output} if output else {}


def _tool(tool: Tool) -> Block:
    schema = msgspec.json.decode(tool.parameters)
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _system(said: Sequence[Said]) -> list[Block]:
    shared = _last_shared(said)
    return [block for each in said for block in _texts(each, marks=each is shared)]


def _messages(said: Sequence[Said]) -> list[dict[str, Any]]:
    """The messages: neighbours of one role are one, since roles take turns."""
    shared = _last_shared(said)
    grouped = groupby(said, key=lambda each: "assistant" if each.role == "assistant" else "user")
    said_by = (
        (role, [block for each in group for block in _blocks(each, marks=each is shared)]) for role, group in grouped
    )
    # The API refuses empty messages.
    messages: list[dict[str, Any]] = [{"role": role, "content": content} for role, content in said_by if content]
    if any(message["role"] == "assistant" for message in messages):
        _mark(messages[-1])
    return messages


def _last_shared(said: Sequence[Said]) -> Said | None:
    """The last turn that begins as it does for all questions: one mark is for all before it, and the API takes four."""
    return next((each for each in reversed(said) if each.shared.strip()), None)


def _mark(message: dict[str, Any]) -> None:
    """Marks the end of a conversation that goes on, which the next request begins with."""
    content = message["content"]
    if content[-1].get("type") not in THOUGHTS:
        content[-1] = content[-1] | _CACHED


def _blocks(said: Said, *, marks: bool) -> list[Block]:
    if said.answers is not None:
        return [{"type": "tool_result", "tool_use_id": call_id(said.answers), "content": said.whole}]
    thoughts = [block for block in said.carried.get("content", ()) if block.get("type") in THOUGHTS]
    return [*thoughts, *_texts(said, marks=marks), *map(_use, said.calls)]


def _texts(said: Said, *, marks: bool) -> list[Block]:
    """A turn's text; marks: whether what is equal for all questions is marked, so that it is cached."""
    shared, text = said.shared, said.text
    if said.role == "assistant":
        # The API refuses white space at the end of a message that the model goes on with.
        text = text.rstrip()
        shared = shared if text else shared.rstrip()
    marked = {"type": "text", "text": shared} | (_CACHED if marks else {})
    # Nor does it take empty texts.
    return [*([marked] if shared.strip() else []), *([{"type": "text", "text": text}] if text.strip() else [])]


def _use(call: Call) -> Block:
    return {"type": "tool_use", "id": call_id(call), "name": call.name, "input": arguments_of(call)}
