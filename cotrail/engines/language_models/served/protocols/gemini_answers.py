"""Answers of Gemini's `generateContent`: each event of a stream has the form of a whole one."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from cotrail.core.generation import ThoughtsKind
from cotrail.engines.language_models.served.calls import CallPiece, Function
from cotrail.engines.language_models.served.protocols.decoding import converted, decoded, encoded
from cotrail.engines.language_models.served.protocols.delta import Delta, Finish, Refused
from cotrail.engines.language_models.token_counts import TokenCounts
from cotrail.errors import TransientStepError

_INTERNAL_ERROR = 500

_MALFORMED = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"})
"""Reasons of texts that may come out well another time."""

_UNEXPLAINED = frozenset({"OTHER", "FINISH_REASON_UNSPECIFIED"})
"""Reasons that give none: what was written may lack its end."""

_ENDS: Mapping[str, Finish] = {"STOP": "done", "MAX_TOKENS": "length", "CONTINUATION": "length"}


class _FunctionCall(Struct, frozen=True):
    name: str | None = None
    args: dict[str, Any] | None = None
    id: str | None = None


class _Part(Struct, frozen=True, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: _FunctionCall | None = None


class _Content(Struct, frozen=True):
    parts: tuple[_Part, ...] | None = None


class _Candidate(Struct, frozen=True, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _Usage(Struct, frozen=True, rename="camel"):
    """Token counts; `candidates_token_count` is without thoughts."""

    prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None

    @property
    def counts(self) -> TokenCounts:
        thought = self.thoughts_token_count or 0
        return TokenCounts(
            prompt=(self.prompt_token_count or 0) + (self.tool_use_prompt_token_count or 0),
            cached=self.cached_content_token_count or 0,
            generated=(self.candidates_token_count or 0) + thought,
            thought=thought,
        )


class _Feedback(Struct, frozen=True, rename="camel"):
    block_reason: str | None = None


class _Answer(Struct, frozen=True, rename="camel"):
    candidates: tuple[_Candidate, ...] | None = None
    usage_metadata: _Usage | None = None
    model_version: str | None = None
    prompt_feedback: _Feedback | None = None
    error: Any = None


class ContentReader:
    """Reads what Gemini answers."""

    def __init__(self) -> None:
        self._text_signature = ""
        self._call_signatures: list[str | None] = []

    @property
    def carried(self) -> dict[str, Any]:
        """See `AnswerReader`: the signatures of the text and of each call."""
        signatures: dict[str, Any] = {"text": self._text_signature} if self._text_signature else {}
        if any(self._call_signatures):
            signatures["calls"] = list(self._call_signatures)
        return {"signatures": signatures} if signatures else {}

    @property
    def thoughts_are(self) -> ThoughtsKind:
        """See `AnswerReader`."""
        return "summary"

    def read(self, data: str) -> Delta:
        """See `AnswerReader`."""
        return self._delta(decoded(data))

    def whole(self, answer: Mapping[str, Any]) -> Delta:
        """See `AnswerReader`."""
        delta = self._delta(answer)
        if delta.finish is None:
            raise TransientStepError("the server's answer doesn't say why its text ended")
        return delta

    def _delta(self, content: Any) -> Delta:
        answer = converted(content, _Answer)
        if answer.error is not None:
            raise _refused(answer.error)
        counts = answer.usage_metadata.counts if answer.usage_metadata else None
        if not answer.candidates:
            blocked = answer.prompt_feedback is not None and answer.prompt_feedback.block_reason
            finish: Finish | None = "refused" if blocked else None
            return Delta(counts=counts, finish=finish, ended=bool(blocked), served_by=answer.model_version or "")
        candidate = answer.candidates[0]
        parts = (candidate.content or _Content()).parts or ()
        texts = [part.text for part in parts if part.text is not None and not part.thought]
        finish = _finish(candidate)
        return Delta(
            text="".join(texts) if texts else None,
            thought="".join(part.text or "" for part in parts if part.thought),
            calls=tuple(filter(None, map(self._keep, parts))),
            counts=counts,
            finish=finish,
            ended=finish is not None,
            served_by=answer.model_version or "",
        )

    def _keep(self, part: _Part) -> CallPiece | None:
        """Keeps a part's signature; returns its call."""
        if part.function_call is None:
            if not part.thought:
                self._text_signature = part.thought_signature or self._text_signature
            return None
        index = len(self._call_signatures)
        self._call_signatures.append(part.thought_signature or None)
        arguments = encoded(part.function_call.args or {})
        return CallPiece(index, part.function_call.id or f"{index}", Function(part.function_call.name or "", arguments))


def _finish(candidate: _Candidate) -> Finish | None:
    reason = candidate.finish_reason
    if reason in _MALFORMED:
        raise TransientStepError(f"the model called a tool in no valid form ({candidate.finish_message or reason})")
    if reason in _UNEXPLAINED:
        raise TransientStepError(
            f"the model stopped for no reason that Gemini names ({candidate.finish_message or reason})"
        )
    return None if reason is None else _ENDS.get(reason, "refused")


def _refused(error: Any) -> Refused:
    described = error if isinstance(error, dict) else {}
    code = described.get("code")
    return Refused(code if isinstance(code, int) else _INTERNAL_ERROR, str(described.get("message") or error))
