"""OpenAI's completions and chat completions, which most servers speak: requests, and answers with deviations."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from cotrail.core.generation import ThoughtsKind
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.event_loop import CallPiece
from cotrail.engines.language_models.served.probabilities import scores_request
from cotrail.engines.language_models.served.prompt_fields import chat_fields, structure_fields
from cotrail.engines.language_models.served.protocols.delta import Delta, Finish, Refused, converted, decoded, finished
from cotrail.engines.language_models.served.protocols.protocol import WireProtocol
from cotrail.engines.language_models.served.refusals import error_message, reported_of, status_meant
from cotrail.engines.language_models.served.request import Order, generation_fields, told_stops
from cotrail.engines.language_models.token_counts import LlamaCppTimings, TokenCounts
from cotrail.errors import TransientStepError

T = TypeVar("T")

END = "[DONE]"

_REFUSALS = ("content_filter", "refusal")

_LENGTHS = ("length", "model_length", "max_tokens")
"""Reasons of texts that reached their most tokens; `model_length` is Mistral's for the whole context."""

_BROKEN = ("error", "abort", "insufficient_system_resource")
"""Reasons of texts that the server couldn't bring to an end."""


class _ContentPart(Struct, frozen=True, omit_defaults=True):
    """A part of Mistral's content: its `thinking` is a list of texts and references."""

    type: str = ""
    text: str | None = None
    thinking: tuple[dict[str, Any], ...] = ()
    signature: str | None = None
    closed: bool | None = None

    @property
    def thought(self) -> str:
        return "".join(each.get("text") or "" for each in self.thinking)

    @property
    def ends(self) -> bool:
        """Return whether no later part belongs to the same thought."""
        return bool(self.signature or self.closed)


class _Message(Struct, frozen=True):
    """A message or a piece of it.

    reasoning_content, reasoning: thoughts, by the server; reasoning_details: OpenRouter's form of them.
    """

    content: str | tuple[_ContentPart, ...] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: tuple[dict[str, Any], ...] | None = None
    tool_calls: tuple[CallPiece, ...] | None = None

    @property
    def parts(self) -> tuple[_ContentPart, ...]:
        return self.content if isinstance(self.content, tuple) else ()

    @property
    def text(self) -> str | None:
        if self.refusal:
            return self.refusal
        if isinstance(self.content, tuple):
            texts = [part.text for part in self.content if part.text is not None and part.type != "thinking"]
            return "".join(texts) if texts else None
        return self.content

    @property
    def thought(self) -> str:
        if self.parts:
            return "".join(part.thought for part in self.parts)
        said = self.reasoning_content or self.reasoning
        return said or "".join(_detail_text(each) for each in self.reasoning_details or ())


class _Choice(Struct, frozen=True):
    """A piece: `text` of a completion, `delta` of a chat, or the whole `message`.

    stop_reason: the stop string that vLLM met, None for the model's end.
    """

    text: str | None = None
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: str | None = None
    stop_reason: int | str | UnsetType | None = UNSET
    logprobs: Any = None

    @property
    def said(self) -> _Message:
        return self.delta or self.message or _Message(content=self.text)

    @property
    def finish(self) -> Finish | None:
        """Why the text ended; raises TransientStepError where the server broke it off."""
        # Gemini's layer for OpenAI's clients says more behind a colon.
        reason = (self.finish_reason or "").partition(":")[0]
        if reason in _REFUSALS or self.said.refusal:
            return "refused"
        if not reason:
            return None
        if reason in _BROKEN:
            raise TransientStepError(f"the server broke its text off ({self.finish_reason})")
        if reason in _LENGTHS:
            return "length"
        if self.stop_reason is UNSET:
            return "done"
        # Of vLLM: a number is the token that ended the text, which is the model's own end.
        return "stop" if isinstance(self.stop_reason, str) else "end"


class _PromptDetails(Struct, frozen=True):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _CompletionDetails(Struct, frozen=True):
    reasoning_tokens: int | None = None


class _Usage(Struct, frozen=True):
    """Token counts; prompt_cache_hit_tokens: DeepSeek's form of `cached_tokens`; reasoning_tokens: SGLang's place."""

    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None
    prompt_cache_hit_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def counts(self) -> TokenCounts:
        read = self.prompt_tokens_details or _PromptDetails()
        written = self.completion_tokens_details or _CompletionDetails()
        return TokenCounts(
            prompt_tokens=self.prompt_tokens or 0,
            cached_prompt_tokens=read.cached_tokens or self.prompt_cache_hit_tokens or 0,
            generated_tokens=self.completion_tokens or 0,
            thought_tokens=written.reasoning_tokens or self.reasoning_tokens or 0,
            cache_written_tokens=read.cache_write_tokens or 0,
        )


class _Chunk(Struct, frozen=True):
    choices: tuple[_Choice, ...] | None = None
    usage: _Usage | None = None
    timings: LlamaCppTimings | None = None
    error: Any = None
    model: str | None = None
    system_fingerprint: str | None = None


class ChunkReader:
    """Reads what a server of OpenAI's completions or chats writes; see `AnswerReader`."""

    def __init__(self) -> None:
        self._thoughts: dict[str, list[str]] = {}
        self._thinking: list[_ContentPart] = []
        self._details: list[dict[str, Any]] = []
        self._is_whole = False

    @property
    def carried(self) -> dict[str, Any]:
        """See `AnswerReader`; under the names in which the server wrote them."""
        carried: dict[str, Any] = {name: "".join(texts) for name, texts in self._thoughts.items()}
        if self._thinking:
            carried["content"] = list(_joined_thinking(self._thinking))
        if self._details:
            carried["reasoning_details"] = self._details if self._is_whole else list(_joined_details(self._details))
        return carried

    @property
    def thoughts_are(self) -> ThoughtsKind:
        summaries = any(each.get("type") == "reasoning.summary" for each in self._details)
        return "summary" if summaries else "whole"

    def read(self, data: str) -> Delta:
        if data == END:
            return Delta(ended=True)
        content = decoded(data)
        if isinstance(content, dict) and content.get("object") == "error":
            raise _refused(content)
        return self._delta(converted(content, _Chunk))

    def whole(self, answer: Mapping[str, Any]) -> Delta:
        self._is_whole = True
        return finished(self._delta(converted(answer, _Chunk)))

    def _delta(self, chunk: _Chunk) -> Delta:
        if chunk.error is not None:
            raise _refused(chunk.error)
        usage = chunk.usage or chunk.timings
        counts = usage.counts if usage else None
        served_by = " ".join(each for each in (chunk.model, chunk.system_fingerprint) if each)
        # The last event of most servers has the counts and no choice.
        if not chunk.choices:
            return Delta(counts=counts, served_by=served_by)
        choice = chunk.choices[0]
        said = choice.said
        self._keep(said)
        return Delta(
            text=said.text,
            thought=said.thought,
            calls=said.tool_calls or (),
            counts=counts,
            logprobs=choice.logprobs,
            finish=choice.finish,
            ended=bool(choice.finish_reason),
            served_by=served_by,
        )

    def _keep(self, said: _Message) -> None:
        for name, text in (("reasoning_content", said.reasoning_content), ("reasoning", said.reasoning)):
            if text:
                self._thoughts.setdefault(name, []).append(text)
        self._thinking += (part for part in said.parts if part.type == "thinking")
        self._details += said.reasoning_details or ()


def _joined_thinking(parts: Iterable[_ContentPart]) -> Iterator[dict[str, Any]]:
    """Mistral's thoughts, the pieces of each put together."""
    for pieces in _runs(parts, lambda last, _: not last.ends):
        items = [item for piece in pieces for item in piece.thinking]
        texts = _runs(items, lambda last, item: last.get("type") == item.get("type") == "text")
        thinking = tuple(run[0] | ({"text": "".join(each["text"] for each in run)} if run[1:] else {}) for run in texts)
        yield msgspec.to_builtins(replace(pieces[-1], thinking=thinking))


def _joined_details(details: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """OpenRouter's details, the pieces of each put together."""
    for pieces in _runs(map(_said, details), _goes_on):
        joined = {name: value for piece in pieces for name, value in piece.items()}
        grown = {name: "".join(piece.get(name, "") for piece in pieces) for name in _GROWING & joined.keys()}
        yield joined | grown


_GROWING = frozenset({"text", "summary"})
"""Fields of a detail of which an event has a part; what is encrypted comes whole."""


def _goes_on(last: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    """Return whether a piece belongs to the same detail as the one before, which its signature ends."""
    is_same = all(piece.get(name) == last.get(name) for name in ("type", "index"))
    return is_same and bool(_GROWING & (last.keys() | piece.keys())) and not last.get("signature")


def _runs(values: Iterable[T], goes_on: Callable[[T, T], bool]) -> Iterator[list[T]]:
    """The values in lists of those that belong together with the one before."""
    run: list[T] = []
    for value in values:
        if run and not goes_on(run[-1], value):
            yield run
            run = []
        run.append(value)
    if run:
        yield run


def _said(detail: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in detail.items() if value is not None}


def _detail_text(detail: Mapping[str, Any]) -> str:
    text = detail.get("text") or detail.get("summary")
    return text if isinstance(text, str) else ""


def _refused(error: Any) -> Refused:
    described = error if isinstance(error, dict) else {}
    code, kind = described.get("code"), str(described.get("code") or described.get("type") or "")
    status = code if isinstance(code, int) else status_meant(str(described.get("type") or kind))
    said = reported_of({"error": error})
    return Refused(status, error_message(error), kind, *said.kinds, pause=said.pause)


class Chat(WireProtocol):
    """See `WireProtocol`."""

    has_tokenizer = True
    address = "/chat/completions"

    def stop_strings(self, endpoint: Endpoint, request: GenerationRequest) -> tuple[str, ...]:
        # A chat message may open with line breaks, which are layout and don't end the line.
        return () if request.until == "line" else told_stops(endpoint, request)

    def body(self, order: Order) -> dict[str, Any]:
        request = order.request
        return {
            **chat_fields(order.prompt, order.endpoint.continues),
            **generation_fields(order, self.stop_strings(order.endpoint, request)),
            **(scores_request("chat") if request.scored else {}),
            **structure_fields(order.dialect, request),
            **({"tool_choice": "none"} if order.withholds_tools else {}),
        }

    def reader(self) -> ChunkReader:
        return ChunkReader()


class Completions(WireProtocol):
    """See `WireProtocol`."""

    has_tokenizer = True
    address = "/completions"

    def body(self, order: Order) -> dict[str, Any]:
        request = order.request
        return {
            "prompt": order.text,
            **generation_fields(order, self.stop_strings(order.endpoint, request)),
            **(scores_request("completions") if request.scored else {}),
            **structure_fields(order.dialect, request),
        }

    def reader(self) -> ChunkReader:
        return ChunkReader()
