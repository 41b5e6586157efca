"""Answers of providers whose APIs are their own, made from the forms of their documentation."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from cotrail.core.calls import Call
from cotrail.engines.language_models.endpoint import Api

Event = dict[str, Any]


def pieces(text: str, size: int = 5) -> Iterator[str]:
    return (text[place : place + size] for place in range(0, len(text), size))


class Dialect(Struct, frozen=True):
    """How a provider writes an answer: as events, and whole."""

    api: Api
    version: str
    streamed: Callable[..., list[Event]]
    whole: Callable[..., Event]


def anthropic_blocks(thought: str, text: str, calls: Iterable[Call]) -> list[Event]:
    thinking = [
        {"type": "thinking", "thinking": thought, "signature": "s=="},
        {"type": "redacted_thinking", "data": "x"},
    ]
    uses = [
        {"type": "tool_use", "id": f"toolu_{place}", "name": call.name, "input": json.loads(call.arguments)}
        for place, call in enumerate(calls)
    ]
    return [*(thinking if thought else []), *([{"type": "text", "text": text}] if text else []), *uses]


ANTHROPIC_USAGE = {"input_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 1}
ANTHROPIC_ENDS = {"end": "end_turn", "length": "max_tokens", "refused": "refusal"}


def anthropic_events(
    thought: str = "", text: str = "", calls: Iterable[Call] = (), end: str = "end", size: int = 5
) -> list[Event]:
    events: list[Event] = [
        {"type": "message_start", "message": {"model": "m-2026", "content": [], "usage": ANTHROPIC_USAGE}},
        {"type": "ping"},
    ]
    for index, block in enumerate(anthropic_blocks(thought, text, calls)):
        empty = {
            name: {} if name == "input" else "" for name in ("thinking", "text", "input", "signature") if name in block
        }
        events.append({"type": "content_block_start", "index": index, "content_block": block | empty})
        kinds = {"thinking": "thinking_delta", "text": "text_delta", "signature": "signature_delta"}
        deltas = [
            {"type": kind, name: piece}
            for name, kind in kinds.items()
            for piece in pieces(str(block.get(name, "")), size)
        ]
        if "input" in block:
            deltas = [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in pieces(json.dumps(block["input"]), size)
            ]
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    usage = {"output_tokens": 20, "output_tokens_details": {"thinking_tokens": 12}}
    return [
        *events,
        {"type": "message_delta", "delta": {"stop_reason": ANTHROPIC_ENDS[end]}, "usage": usage},
        {"type": "message_stop"},
    ]


def anthropic_whole(thought: str = "", text: str = "", calls: Iterable[Call] = (), end: str = "end") -> Event:
    usage = {**ANTHROPIC_USAGE, "output_tokens": 20, "output_tokens_details": {"thinking_tokens": 12}}
    content = anthropic_blocks(thought, text, calls)
    return {
        "type": "message",
        "model": "m-2026",
        "content": content,
        "stop_reason": ANTHROPIC_ENDS[end],
        "usage": usage,
    }


def response_items(thought: str, text: str, calls: Iterable[Call], end: str) -> list[Event]:
    summary = [{"type": "summary_text", "text": thought}]
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "gAAA=="}
    kind = "refusal" if end == "refused" else "output_text"
    said = {"type": kind, "refusal" if end == "refused" else "text": text}
    message = {"type": "message", "role": "assistant", "content": [said]}
    called = [
        {
            "type": "function_call",
            "id": f"fc_{place}",
            "call_id": f"c{place}",
            "name": call.name,
            "arguments": call.arguments,
        }
        for place, call in enumerate(calls)
    ]
    return [*([reasoning] if thought else []), *([message] if text else []), *called]


def response_whole(thought: str = "", text: str = "", calls: Iterable[Call] = (), end: str = "end") -> Event:
    usage = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 1},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 12},
    }
    details = {"reason": "max_output_tokens"} if end == "length" else None
    status = "incomplete" if details else "completed"
    return {
        "model": "m-2026",
        "status": status,
        "incomplete_details": details,
        "output": response_items(thought, text, calls, end),
        "usage": usage,
        "error": None,
    }


def response_events(
    thought: str = "", text: str = "", calls: Iterable[Call] = (), end: str = "end", size: int = 5
) -> list[Event]:
    calls = tuple(calls)
    response = response_whole(thought, text, calls, end)
    events: list[Event] = [{"type": "response.created", "response": response | {"output": [], "status": "in_progress"}}]
    kind = "response.refusal.delta" if end == "refused" else "response.output_text.delta"
    for index, item in enumerate(response["output"]):
        events.append({"type": "response.output_item.added", "output_index": index, "item": {"type": item["type"]}})
        if item["type"] == "reasoning":
            events.append({"type": "response.reasoning_summary_part.added", "output_index": index})
            events += [
                {"type": "response.reasoning_summary_text.delta", "delta": piece} for piece in pieces(thought, size)
            ]
        if item["type"] == "message":
            events += [{"type": kind, "delta": piece} for piece in pieces(text, size)]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    return [*events, {"type": f"response.{response['status']}", "response": response}]


GEMINI_ENDS = {"end": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY"}


def gemini_event(parts: list[Event], end: str | None = None) -> Event:
    usage = {"promptTokenCount": 9, "cachedContentTokenCount": 3, "candidatesTokenCount": 8, "thoughtsTokenCount": 12}
    candidate = {"content": {"role": "model", "parts": parts}} | ({"finishReason": GEMINI_ENDS[end]} if end else {})
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m-2026"}


def gemini_parts(thought: str, text: str, calls: Iterable[Call], size: int = 5) -> Iterator[Event]:
    yield from ({"text": piece, "thought": True} for piece in pieces(thought, size))
    yield from ({"text": piece} for piece in pieces(text, size))
    for place, call in enumerate(calls):
        signature = {} if place else {"thoughtSignature": "c2ln"}
        yield {"functionCall": {"name": call.name, "args": json.loads(call.arguments)}} | signature


def gemini_events(
    thought: str = "", text: str = "", calls: Iterable[Call] = (), end: str = "end", size: int = 5
) -> list[Event]:
    return [*(gemini_event([part]) for part in gemini_parts(thought, text, calls, size)), gemini_event([], end)]


def gemini_whole(thought: str = "", text: str = "", calls: Iterable[Call] = (), end: str = "end") -> Event:
    return gemini_event(list(gemini_parts(thought, text, calls)), end)


DIALECTS = {
    "anthropic": Dialect("anthropic", "/v1", anthropic_events, anthropic_whole),
    "responses": Dialect("responses", "/v1", response_events, response_whole),
    "gemini": Dialect("gemini", "/v1beta", gemini_events, gemini_whole),
}
