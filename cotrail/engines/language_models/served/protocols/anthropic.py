"""Anthropic's messages."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.core.calls import Tool
from cotrail.core.generation import ThoughtsKind
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.engines.language_models.endpoint import LEAST_BUDGET, Endpoint
from cotrail.engines.language_models.served.event_loop import CallPiece, Function
from cotrail.engines.language_models.served.prompt_fields import Message, arguments_of, conversation, last_shared
from cotrail.engines.language_models.served.protocols.delta import (
    Delta,
    Finish,
    Refused,
    converted,
    decoded,
    encoded,
    event_of,
    finished,
)
from cotrail.engines.language_models.served.protocols.protocol import WireProtocol
from cotrail.engines.language_models.served.refusals import status_meant
from cotrail.engines.language_models.served.request import Order, completed, told_stops
from cotrail.engines.language_models.token_counts import TokenCounts
from cotrail.errors import StepError

THOUGHTS = ("thinking", "redacted_thinking")
"""Types of the blocks that hold thoughts."""

_FINISHES: Mapping[str, Finish] = {
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


_EVENTS = frozenset(
    {*("message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop"), "error"}
)
"""Types of the events that say something here."""


class _OutputDetails(Struct, frozen=True):
    thinking_tokens: int | None = None


class _Usage(Struct, frozen=True):
    """Token counts so far; what is read from the cache or written to it isn't in `input_tokens`."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _OutputDetails | None = None


class _Piece(Struct, frozen=True):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _Message(Struct, frozen=True):
    model: str = ""
    content: tuple[dict[str, Any], ...] = ()
    stop_reason: str | None = None
    usage: _Usage | None = None


class _Event(Struct, frozen=True):
    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: dict[str, Any] = {}
    delta: dict[str, Any] = {}
    usage: _Usage | None = None
    error: Any = None


class MessageReader:
    """Reads what Anthropic's messages answer; see `AnswerReader`."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}
        self._grown: dict[tuple[int, str], list[str]] = {}
        self._usage: dict[str, Any] = {}

    @property
    def carried(self) -> dict[str, Any]:
        """See `AnswerReader`: the blocks of thoughts, with their signatures."""
        thoughts = [self._whole_block(index) for index in sorted(self._blocks)]
        return {"content": thoughts} if thoughts else {}

    @property
    def thoughts_are(self) -> ThoughtsKind:
        return "summary"

    def read(self, data: str) -> Delta:
        event = event_of(decoded(data), _EVENTS, _Event)
        match event.type:
            case "message_start" if event.message:
                return Delta(counts=self._counts(event.message.usage), served_by=event.message.model)
            case "content_block_start":
                return self._begin(event.index, event.content_block)
            case "content_block_delta":
                return self._add(event.index, event.delta)
            case "message_delta":
                return Delta(counts=self._counts(event.usage), finish=_finish(converted(event.delta, _Piece)))
            case "message_stop":
                return Delta(ended=True)
            case "error":
                raise refused(event.error)
        return Delta()

    def whole(self, answer: Mapping[str, Any]) -> Delta:
        if answer.get("type") == "error":
            raise refused(answer.get("error"))
        message = converted(answer, _Message)
        parts = [self._begin(place, block) for place, block in enumerate(message.content)]
        texts = [part.text for part in parts if part.text is not None]
        whole = Delta(
            text="".join(texts) if texts else None,
            thought="".join(part.thought for part in parts),
            calls=tuple(call for part in parts for call in part.calls),
            counts=self._counts(message.usage),
            finish=_finish(message),
            ended=True,
            served_by=message.model,
        )
        return finished(whole)

    def _begin(self, index: int, block: dict[str, Any]) -> Delta:
        match block.get("type"):
            case "thinking" | "redacted_thinking":
                # What stands between two thoughts is for readers; what is handed back is the blocks.
                between = "\n\n" if self._blocks and block["type"] == "thinking" else ""
                self._blocks[index] = block
                return Delta(thought=between + converted(block, _Piece).thinking)
            case "tool_use":
                arguments = encoded(block["input"]) if block.get("input") else ""
                said = Function(name=str(block.get("name", "")), arguments=arguments)
                return Delta(calls=(CallPiece(index=index, id=str(block.get("id", "")), function=said),))
            case "text":
                return Delta(text=converted(block, _Piece).text)
        return Delta()

    def _add(self, index: int, delta: dict[str, Any]) -> Delta:
        match delta.get("type"):
            case "text_delta":
                return Delta(text=converted(delta, _Piece).text)
            case "thinking_delta" | "signature_delta":
                piece = converted(delta, _Piece)
                self._grow(index, thinking=piece.thinking, signature=piece.signature)
                return Delta(thought=piece.thinking)
            case "input_json_delta":
                arguments = converted(delta, _Piece).partial_json
                return Delta(calls=(CallPiece(index=index, function=Function(arguments=arguments)),))
        return Delta()

    def _grow(self, index: int, **texts: str) -> None:
        self._blocks.setdefault(index, {"type": "thinking", "thinking": "", "signature": ""})
        for name, text in texts.items():
            self._grown.setdefault((index, name), []).append(text)

    def _whole_block(self, index: int) -> dict[str, Any]:
        block = self._blocks[index]
        grown = {name: "".join(texts) for (at, name), texts in self._grown.items() if at == index}
        return block | {name: block.get(name, "") + text for name, text in grown.items() if text}

    def _counts(self, usage: _Usage | None) -> TokenCounts | None:
        """The counts with those of former events, of which later ones repeat only some."""
        if usage is None:
            return None
        self._usage |= {name: value for name, value in msgspec.structs.asdict(usage).items() if value is not None}
        known = self._usage
        read, written = known.get("cache_read_input_tokens", 0), known.get("cache_creation_input_tokens", 0)
        details = known.get("output_tokens_details") or _OutputDetails()
        return TokenCounts(
            prompt_tokens=known.get("input_tokens", 0) + read + written,
            cached_prompt_tokens=read,
            generated_tokens=known.get("output_tokens", 0),
            thought_tokens=details.thinking_tokens or 0,
            cache_written_tokens=written,
        )


def refused(error: Any) -> Refused:
    """An error that is reported in place of an answer, or within it."""
    described = error if isinstance(error, dict) else {}
    kind = str(described.get("type", ""))
    return Refused(status_meant(kind), str(described.get("message") or kind or error), kind)


def _finish(ended: _Piece | _Message) -> Finish | None:
    return None if ended.stop_reason is None else _FINISHES.get(ended.stop_reason, "end")


VERSION = "2023-06-01"
"""Version of the API."""

_CACHED = {"cache_control": {"type": "ephemeral"}}

Block = dict[str, Any]


class AnthropicMessages(WireProtocol):
    """See `WireProtocol`."""

    address = "/messages"
    never_sent = frozenset({"seed", "logprobs", "stream_options"})

    def headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})

    def stop_strings(self, endpoint: Endpoint, request: GenerationRequest) -> tuple[str, ...]:
        # The API refuses stop sequences of white space alone.
        return tuple(stop for stop in told_stops(endpoint, request) if stop.strip())

    def body(self, order: Order) -> dict[str, Any]:
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
            **({"tool_choice": {"type": "none"}} if order.withholds_tools else {}),
            **({"stop_sequences": list(stops)} if stops else {}),
            **({"stream": True} if order.streams else {}),
            **_sampling(order),
            **_thinking(order),
            **_output(endpoint, request),
        }
        return completed(endpoint, fields)

    def reader(self) -> MessageReader:
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
        # Models since Opus 4.7 leave out what they thought unless they are asked for it.
        return {"thinking": {"type": "adaptive", "display": "summarized"}}
    # The API wants a budget below the limit of thought and text together, which a long prompt may have lowered.
    budget = min(endpoint.thought_tokens, order.request.max_tokens - 1)
    if budget < LEAST_BUDGET:
        raise StepError(
            f"the prompt leaves {order.request.max_tokens:,} tokens of the context, and a thought needs "
            f"{LEAST_BUDGET:,} in addition to the text: take a model with a longer context, or shorter prompts"
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


def _system(said: Sequence[Message]) -> list[Block]:
    shared = last_shared(said)  # one mark alone, as the API takes four
    return [block for each in said for block in _texts(each, marks=each is shared)]


def _messages(said: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages: neighbours of one role are one, since roles take turns."""
    shared = last_shared(said)
    grouped = groupby(said, key=lambda each: "assistant" if each.role == "assistant" else "user")
    said_by = (
        (role, [block for each in group for block in _blocks(each, marks=each is shared)]) for role, group in grouped
    )
    # The API refuses empty messages.
    messages: list[dict[str, Any]] = [{"role": role, "content": content} for role, content in said_by if content]
    if any(message["role"] == "assistant" for message in messages):
        _mark(messages[-1])
    return messages


def _mark(message: dict[str, Any]) -> None:
    """Marks the end of a conversation that continues, which the next request begins with."""
    content = message["content"]
    if content[-1].get("type") not in THOUGHTS:
        content[-1] = content[-1] | _CACHED


def _blocks(said: Message, *, marks: bool) -> list[Block]:
    if said.answers is not None:
        return [{"type": "tool_result", "tool_use_id": said.answers.id, "content": said.whole}]
    thoughts = [block for block in said.carried.get("content", ()) if block.get("type") in THOUGHTS]
    uses = ({"type": "tool_use", "id": each.id, "name": each.name, "input": arguments_of(each)} for each in said.calls)
    return [*thoughts, *_texts(said, marks=marks), *uses]


def _texts(said: Message, *, marks: bool) -> list[Block]:
    """A turn's text; marks: whether what is equal for all questions is marked, so that it is cached."""
    shared, text = said.shared, said.text
    if said.role == "assistant":
        # The API refuses white space at the end of a message that the model continues.
        text = text.rstrip()
        shared = shared if text else shared.rstrip()
    marked = {"type": "text", "text": shared} | (_CACHED if marks else {})
    # Nor does it take empty texts.
    return [*([marked] if shared.strip() else []), *([{"type": "text", "text": text}] if text.strip() else [])]
