"""OpenAI's responses: requests, and answers as events of a stream and as whole ones."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.calls import Tool
from cotrail.core.generation import ThoughtsKind
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.providers import CACHE_MARKED
from cotrail.engines.language_models.served.event_loop import CallPiece, Function
from cotrail.engines.language_models.served.prompt_fields import Message, conversation, json_schema_format, last_shared
from cotrail.engines.language_models.served.protocols.delta import Delta, Finish, Refused, converted, decoded, event_of
from cotrail.engines.language_models.served.protocols.protocol import WireProtocol
from cotrail.engines.language_models.served.refusals import status_meant
from cotrail.engines.language_models.served.request import Order, completed
from cotrail.engines.language_models.token_counts import TokenCounts
from cotrail.errors import TransientStepError

_EVENTS = frozenset(
    {
        *("response.output_item.added", "response.output_item.done", "response.output_text.delta"),
        *("response.refusal.delta", "response.reasoning_summary_text.delta", "response.reasoning_text.delta"),
        *("response.reasoning_summary_part.added", "response.completed", "response.incomplete", "response.failed"),
        "error",
    }
)
"""Types of the events that say something here."""


class _InputDetails(Struct, frozen=True):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(Struct, frozen=True):
    reasoning_tokens: int | None = None


class _Usage(Struct, frozen=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None

    @property
    def counts(self) -> TokenCounts:
        read = self.input_tokens_details or _InputDetails()
        written = self.output_tokens_details or _OutputDetails()
        return TokenCounts(
            prompt_tokens=self.input_tokens or 0,
            cached_prompt_tokens=read.cached_tokens or 0,
            generated_tokens=self.output_tokens or 0,
            thought_tokens=written.reasoning_tokens or 0,
            cache_written_tokens=read.cache_write_tokens or 0,
        )


class _Part(Struct, frozen=True):
    type: str = ""
    text: str = ""
    refusal: str = ""


class _Item(Struct, frozen=True):
    type: str = ""
    content: tuple[_Part, ...] | None = None
    summary: tuple[_Part, ...] | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    phase: str | None = None

    @property
    def is_commentary(self) -> bool:
        """What the model says about its work before its answer, which is no part of that."""
        return self.type == "message" and self.phase == "commentary"

    @property
    def thoughts(self) -> tuple[_Part, ...]:
        if self.type == "reasoning":
            return self.content or self.summary or ()
        return (self.content or ()) if self.is_commentary else ()


class _Incomplete(Struct, frozen=True):
    reason: str | None = None


class _Response(Struct, frozen=True):
    model: str = ""
    status: str = ""
    output: tuple[dict[str, Any], ...] = ()
    incomplete_details: _Incomplete | None = None
    usage: _Usage | None = None
    error: Any = None


class _Event(Struct, frozen=True):
    type: str = ""
    delta: Any = None
    output_index: int | None = None
    item: dict[str, Any] | None = None
    response: _Response | None = None
    code: str | None = None
    message: str | None = None
    error: Any = None


class ResponseReader:
    """Reads what OpenAI's responses answer; see `AnswerReader`."""

    def __init__(self) -> None:
        self._before_answer: list[dict[str, Any]] = []
        self._commentaries: set[int | None] = set()
        self._has_whole_thoughts = False
        self._has_refused = False
        self._has_thoughts = False

    @property
    def carried(self) -> dict[str, Any]:
        """See `AnswerReader`: the items of thoughts, encrypted, and of comments on them."""
        return {"items": list(self._before_answer)} if self._before_answer else {}

    @property
    def thoughts_are(self) -> ThoughtsKind:
        return "whole" if self._has_whole_thoughts else "summary"

    def read(self, data: str) -> Delta:
        event = event_of(decoded(data), _EVENTS, _Event)
        said = event.delta if isinstance(event.delta, str) else ""
        match event.type:
            case "response.output_item.added" if event.item and converted(event.item, _Item).is_commentary:
                self._commentaries.add(event.output_index)
                return Delta(thought=self._between_thoughts())
            case "response.output_text.delta":
                return Delta(thought=said) if event.output_index in self._commentaries else Delta(text=said)
            case "response.refusal.delta":
                self._has_refused = True
                return Delta(text=said)
            case "response.reasoning_summary_text.delta":
                return Delta(thought=said)
            case "response.reasoning_text.delta":
                self._has_whole_thoughts = True
                return Delta(thought=said)
            case "response.reasoning_summary_part.added":
                return Delta(thought=self._between_thoughts())
            case "response.output_item.done" if event.item is not None:
                return Delta(calls=tuple(self._keep(event.item, event.output_index)))
            case "response.completed" | "response.incomplete" | "response.failed" if event.response:
                return self._end(event.response)
            case "error":
                raise _refused(event.error or {"code": event.code, "message": event.message})
        return Delta()

    def whole(self, answer: Mapping[str, Any]) -> Delta:
        response = converted(answer, _Response)
        items = [converted(item, _Item) for item in response.output]
        calls = [call for place, item in enumerate(response.output) for call in self._keep(item, place)]
        said = [item for item in items if item.type == "message" and not item.is_commentary]
        parts = [part for item in said for part in item.content or ()]
        self._has_refused = any(part.refusal for part in parts)
        self._has_whole_thoughts = any(item.content for item in items if item.type == "reasoning")
        return replace(
            self._end(response),
            text="".join(part.refusal or part.text for part in parts) if parts else None,
            thought="\n\n".join(part.text for item in items for part in item.thoughts),
            calls=tuple(calls),
        )

    def _between_thoughts(self) -> str:
        """What stands before a summary or a comment: nothing before the first one."""
        before, self._has_thoughts = self._has_thoughts, True
        return "\n\n" if before else ""

    def _keep(self, item: dict[str, Any], index: int | None) -> Iterator[CallPiece]:
        """Keeps what is handed back of a whole item; yields its call."""
        match item.get("type"):
            case "reasoning":
                self._before_answer.append(item)
            case "message" if converted(item, _Item).is_commentary:
                self._before_answer.append(item)
            case "function_call":
                call = converted(item, _Item)
                yield CallPiece(index, call.call_id, Function(name=call.name, arguments=call.arguments))

    def _end(self, response: _Response) -> Delta:
        if response.status == "failed" or response.error:
            raise _refused(response.error)
        return Delta(
            counts=response.usage.counts if response.usage else None,
            finish=self._finish(response),
            ended=True,
            served_by=response.model,
        )

    def _finish(self, response: _Response) -> Finish:
        if self._has_refused:
            return "refused"
        match (response.incomplete_details or _Incomplete()).reason:
            case "content_filter":
                return "refused"
            case "max_output_tokens":
                return "length"
            case None if response.status == "completed":
                return "end"
        raise TransientStepError(f"the server's answer is {response.status or 'of no status'}, and says no reason")


def _refused(error: Any) -> Refused:
    described = error if isinstance(error, dict) else {}
    kind = str(described.get("code") or described.get("type") or "")
    return Refused(status_meant(kind), str(described.get("message") or kind or "the response failed"), kind)


ENCRYPTED = "reasoning.encrypted_content"
"""What the API is to include, so that thoughts can be handed back though nothing is stored there."""

_KEY_DIGITS = 32

Item = dict[str, Any]


class Responses(WireProtocol):
    """See `WireProtocol`."""

    address = "/responses"
    never_sent = frozenset({"seed", "stop", "logprobs", "stream_options"})

    def stop_strings(self, endpoint: Endpoint, request: GenerationRequest) -> tuple[str, ...]:  # noqa: ARG002 - none
        """See `WireProtocol`: the API has none."""
        return ()

    def body(self, order: Order) -> dict[str, Any]:
        endpoint, request = order.endpoint, order.request
        fields = {
            "model": endpoint.model,
            "input": _input(endpoint, conversation(order.prompt)),
            (endpoint.limit_field or "max_output_tokens"): request.max_tokens,
            # What a run asks is kept by cotrail, and nowhere else.
            "store": False,
            **({"stream": True} if order.streams else {}),
            **({"tools": [_tool(tool) for tool in order.prompt.tools]} if order.prompt.tools else {}),
            **({"tool_choice": "none"} if order.withholds_tools else {}),
            **_thinking(order),
            **_format(request),
            **_cache_key(order.prompt),
        }
        return completed(endpoint, fields)

    def reader(self) -> ResponseReader:
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


def _input(endpoint: Endpoint, said: Sequence[Message]) -> list[Item]:
    """The items; what all questions share is marked where a model caches prompts up to marks."""
    shared = last_shared(said) if endpoint.model.startswith(CACHE_MARKED) else None
    return [item for each in said for item in _items(each, marks=each is shared)]


def _items(said: Message, *, marks: bool) -> list[Item]:
    if said.answers is not None:
        return [{"type": "function_call_output", "call_id": said.answers.id, "output": said.whole}]
    content = _marked(said) if marks and said.role != "assistant" else said.whole
    message = [{"role": said.role, "content": content}] if content else []
    calls = [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in said.calls
    ]
    return [*said.carried.get("items", ()), *message, *calls]


def _marked(said: Message) -> list[Item]:
    """A turn's text in parts, of which the first is what all questions share."""
    shared = {"type": "input_text", "text": said.shared, "prompt_cache_breakpoint": {"mode": "explicit"}}
    return [shared, *([{"type": "input_text", "text": said.text}] if said.text else [])]
