"""Answers in the form of OpenAI's completions and chats, with the fields that other servers add to it."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from cotrail.core.generation import ThoughtsKind
from cotrail.engines.language_models.served.calls import CallPiece
from cotrail.engines.language_models.served.protocols.decoding import converted, decoded
from cotrail.engines.language_models.served.protocols.delta import Delta, Finish, Refused
from cotrail.engines.language_models.served.refusals import error_message, status_meant
from cotrail.engines.language_models.token_counts import LlamaCppTimings, TokenCounts
from cotrail.errors import TransientStepError

END = "[DONE]"

_REFUSALS = ("content_filter", "refusal")


class _Text(Struct, frozen=True):
    text: str = ""


class _ContentPart(Struct, frozen=True):
    """A part of Mistral's content: its `thinking` is a list of texts."""

    type: str = ""
    text: str | None = None
    thinking: tuple[_Text, ...] = ()


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
            return "".join(each.text for part in self.parts for each in part.thinking)
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
        if self.finish_reason in _REFUSALS or self.said.refusal:
            return "refused"
        match self.finish_reason:
            case None:
                return None
            case "length":
                return "length"
        if self.stop_reason is UNSET:
            return "done"
        return "stop" if isinstance(self.stop_reason, str) else "end"


class _PromptDetails(Struct, frozen=True):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _CompletionDetails(Struct, frozen=True):
    reasoning_tokens: int | None = None


class _Usage(Struct, frozen=True):
    """Token counts; prompt_cache_hit_tokens: DeepSeek's form of `cached_tokens`."""

    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None
    prompt_cache_hit_tokens: int | None = None

    @property
    def counts(self) -> TokenCounts:
        read = self.prompt_tokens_details or _PromptDetails()
        written = self.completion_tokens_details or _CompletionDetails()
        return TokenCounts(
            prompt=self.prompt_tokens or 0,
            cached=read.cached_tokens or self.prompt_cache_hit_tokens or 0,
            generated=self.completion_tokens or 0,
            thought=written.reasoning_tokens or 0,
            cache_written=read.cache_write_tokens or 0,
        )


class _Chunk(Struct, frozen=True):
    choices: tuple[_Choice, ...] | None = None
    usage: _Usage | None = None
    timings: LlamaCppTimings | None = None
    error: Any = None
    model: str | None = None
    system_fingerprint: str | None = None


class ChunkReader:
    """Reads what a server of OpenAI's completions or chats writes."""

    def __init__(self) -> None:
        self._thoughts: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []

    @property
    def carried(self) -> dict[str, Any]:
        """See `AnswerReader`; under the names in which the server wrote them."""
        carried: dict[str, Any] = {name: "".join(texts) for name, texts in self._thoughts.items() if name != "thinking"}
        if "thinking" in self._thoughts:
            texts = "".join(self._thoughts["thinking"])
            carried["content"] = [{"type": "thinking", "thinking": [{"type": "text", "text": texts}]}]
        return carried | ({"reasoning_details": list(self._joined_details())} if self._details else {})

    @property
    def thoughts_are(self) -> ThoughtsKind:
        """See `AnswerReader`."""
        summaries = any(each.get("type") == "reasoning.summary" for each in self._details)
        return "summary" if summaries else "whole"

    def read(self, data: str) -> Delta:
        """See `AnswerReader`."""
        if data == END:
            return Delta(ended=True)
        return self._delta(converted(decoded(data), _Chunk))

    def whole(self, answer: Mapping[str, Any]) -> Delta:
        """See `AnswerReader`."""
        delta = self._delta(converted(answer, _Chunk))
        if delta.finish is None:
            raise TransientStepError("the server's answer doesn't say why its text ended")
        return delta

    def _delta(self, chunk: _Chunk) -> Delta:
        if chunk.error is not None:
            raise _refused(chunk.error)
        usage = chunk.usage or chunk.timings
        counts = usage.counts if usage else None
        served_by = " ".join(each for each in (chunk.model, chunk.system_fingerprint) if each)
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
            ended=choice.finish_reason is not None,
            served_by=served_by,
        )

    def _keep(self, said: _Message) -> None:
        thinking = "".join(each.text for part in said.parts for each in part.thinking)
        for name, text in (
            ("reasoning_content", said.reasoning_content),
            ("reasoning", said.reasoning),
            ("thinking", thinking),
        ):
            if text:
                self._thoughts.setdefault(name, []).append(text)
        self._details += said.reasoning_details or ()

    def _joined_details(self) -> Iterator[dict[str, Any]]:
        """OpenRouter's details, the pieces of each put together."""
        last: dict[str, Any] = {}
        for piece in map(_said, self._details):
            if last and all(piece.get(name) == last.get(name) for name in ("type", "index")):
                last = last | piece | {name: last.get(name, "") + piece[name] for name in _GROWING & piece.keys()}
                continue
            if last:
                yield last
            last = piece
        if last:
            yield last


def _said(detail: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in detail.items() if value is not None}


_GROWING = frozenset({"text", "summary", "data"})
"""Fields of a detail of which an event has a part."""


def _detail_text(detail: Mapping[str, Any]) -> str:
    text = detail.get("text") or detail.get("summary")
    return text if isinstance(text, str) else ""


def _refused(error: Any) -> Refused:
    described = error if isinstance(error, dict) else {}
    code, kind = described.get("code"), str(described.get("code") or described.get("type") or "")
    status = code if isinstance(code, int) else status_meant(str(described.get("type") or kind))
    return Refused(status, error_message(error), kind)
