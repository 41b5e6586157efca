"""Answers of Anthropic's messages: events of a stream, and whole ones."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.core.generation import ThoughtsKind
from cotrail.engines.language_models.served.calls import CallPiece, Function
from cotrail.engines.language_models.served.protocols.decoding import converted, decoded, encoded, event_of
from cotrail.engines.language_models.served.protocols.delta import Delta, Finish, Refused
from cotrail.engines.language_models.served.refusals import status_meant
from cotrail.engines.language_models.token_counts import TokenCounts
from cotrail.errors import TransientStepError

THOUGHTS = ("thinking", "redacted_thinking")
"""Types of the blocks that hold thoughts."""

_FINISHES: Mapping[str, Finish] = {
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


_EVENTS = frozenset(
    {
        *("message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop"),
        "error",
    }
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
    """A part of a block."""

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
    """Reads what Anthropic's messages answer."""

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
        """See `AnswerReader`."""
        return "summary"

    def read(self, data: str) -> Delta:
        """See `AnswerReader`."""
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
        """See `AnswerReader`."""
        if answer.get("type") == "error":
            raise refused(answer.get("error"))
        message = converted(answer, _Message)
        if message.stop_reason is None:
            raise TransientStepError("the server's answer doesn't say why its text ended")
        parts = [self._begin(place, block) for place, block in enumerate(message.content)]
        texts = [part.text for part in parts if part.text is not None]
        return Delta(
            text="".join(texts) if texts else None,
            thought="".join(part.thought for part in parts),
            calls=tuple(call for part in parts for call in part.calls),
            counts=self._counts(message.usage),
            finish=_finish(message),
            ended=True,
            served_by=message.model,
        )

    def _begin(self, index: int, block: dict[str, Any]) -> Delta:
        """Takes a block, or the beginning of one."""
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
        """A block with what was added to it."""
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
            prompt=known.get("input_tokens", 0) + read + written,
            cached=read,
            generated=known.get("output_tokens", 0),
            thought=details.thinking_tokens or 0,
            cache_written=written,
        )


def refused(error: Any) -> Refused:
    """An error that is reported in place of an answer, or within it."""
    described = error if isinstance(error, dict) else {}
    kind = str(described.get("type", ""))
    return Refused(status_meant(kind), str(described.get("message") or kind or error), kind)


def _finish(ended: _Piece | _Message) -> Finish | None:
    return None if ended.stop_reason is None else _FINISHES.get(ended.stop_reason, "end")
