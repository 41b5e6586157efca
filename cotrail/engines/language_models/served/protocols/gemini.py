"""Gemini's `generateContent`: its requests, and its answers, whose events have the form of a whole one."""

from collections.abc import Container, Mapping
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.core.calls import GIVEN_IDS, Call, Tool
from cotrail.core.generation import ThoughtsKind
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.event_loop import CallPiece, Function
from cotrail.engines.language_models.served.prompt_fields import Message, arguments_of, conversation
from cotrail.engines.language_models.served.protocols import delta
from cotrail.engines.language_models.served.protocols.protocol import WireProtocol
from cotrail.engines.language_models.served.refusals import reported_of
from cotrail.engines.language_models.served.request import Order, completed, told_stops
from cotrail.engines.language_models.token_counts import TokenCounts
from cotrail.errors import TransientStepError

_INTERNAL_ERROR = 500

_MALFORMED = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"})
"""Reasons of texts that may come out well another time."""

_UNEXPLAINED = frozenset({"OTHER", "FINISH_REASON_UNSPECIFIED"})
"""Reasons that give none: what was written may lack its end."""

_ENDS: Mapping[str, delta.Finish] = {"STOP": "done", "MAX_TOKENS": "length", "CONTINUATION": "length"}


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
            prompt_tokens=(self.prompt_token_count or 0) + (self.tool_use_prompt_token_count or 0),
            cached_prompt_tokens=self.cached_content_token_count or 0,
            generated_tokens=(self.candidates_token_count or 0) + thought,
            thought_tokens=thought,
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
    """Reads what Gemini answers; see `AnswerReader`."""

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
        return "summary"

    def read(self, data: str) -> delta.Delta:
        return self._delta(delta.decoded(data))

    def whole(self, answer: Mapping[str, Any]) -> delta.Delta:
        return delta.finished(self._delta(answer))

    def _delta(self, content: Any) -> delta.Delta:
        answer = delta.converted(content, _Answer)
        if answer.error is not None:
            raise _refused(answer.error)
        counts = answer.usage_metadata.counts if answer.usage_metadata else None
        if not answer.candidates:
            blocked = answer.prompt_feedback is not None and answer.prompt_feedback.block_reason
            finish: delta.Finish | None = "refused" if blocked else None
            return delta.Delta(counts=counts, finish=finish, ended=bool(blocked), served_by=answer.model_version or "")
        candidate = answer.candidates[0]
        parts = (candidate.content or _Content()).parts or ()
        texts = [part.text for part in parts if part.text is not None and not part.thought]
        finish = _finish(candidate)
        return delta.Delta(
            text="".join(texts) if texts else None,
            thought="".join(part.text or "" for part in parts if part.thought),
            calls=tuple(filter(None, map(self._keep, parts))),
            counts=counts,
            finish=finish,
            ended=finish is not None,
            served_by=answer.model_version or "",
        )

    def _keep(self, part: _Part) -> CallPiece | None:
        if part.function_call is None:
            if not part.thought:
                self._text_signature = part.thought_signature or self._text_signature
            return None
        index = len(self._call_signatures)
        self._call_signatures.append(part.thought_signature or None)
        arguments = delta.encoded(part.function_call.args or {})
        return CallPiece(index, part.function_call.id, Function(part.function_call.name or "", arguments))


def _finish(candidate: _Candidate) -> delta.Finish | None:
    reason = candidate.finish_reason
    if reason in _MALFORMED:
        raise TransientStepError(f"the model called a tool in no valid form ({candidate.finish_message or reason})")
    if reason in _UNEXPLAINED:
        raise TransientStepError(
            f"the model stopped for no reason that Gemini names ({candidate.finish_message or reason})"
        )
    return None if reason is None else _ENDS.get(reason, "refused")


def _refused(error: Any) -> delta.Refused:
    described = error if isinstance(error, dict) else {}
    code = described.get("code")
    said = reported_of({"error": error})
    status = code if isinstance(code, int) else _INTERNAL_ERROR
    return delta.Refused(status, str(described.get("message") or error), *said.kinds, pause=said.pause)


MOST_STOPS = 5
"""The most stop sequences that the API takes."""

Part = dict[str, Any]


class Gemini(WireProtocol):
    """See `WireProtocol`."""

    never_sent = frozenset({"logprobs", "stream_options"})

    def path(self, endpoint: Endpoint, *, streams: bool) -> str:
        method = "streamGenerateContent?alt=sse" if streams else "generateContent"
        return f"/models/{endpoint.model}:{method}"

    def headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key} if key else {}

    def stop_strings(self, endpoint: Endpoint, request: GenerationRequest) -> tuple[str, ...]:
        return told_stops(endpoint, request)[:MOST_STOPS]

    def body(self, order: Order) -> dict[str, Any]:
        said = conversation(order.prompt)
        system = [each.whole for each in said if each.role == "system"]
        others = [each for each in said if each.role != "system"]
        tools = [_declared(tool) for tool in order.prompt.tools]
        fields = {
            **({"systemInstruction": {"parts": [{"text": text} for text in system]}} if system else {}),
            "contents": _contents(others),
            **({"tools": [{"functionDeclarations": tools}]} if tools else {}),
            **({"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}} if order.withholds_tools else {}),
            "generationConfig": self._config(order),
        }
        return completed(order.endpoint, fields)

    def reader(self) -> ContentReader:
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


def _contents(said: list[Message]) -> list[dict[str, Any]]:
    """The contents: neighbours of one role are one, as the answers to calls that were made together have to be."""
    given = frozenset(id_ for each in said for id_ in each.carried.get(GIVEN_IDS, ()) if id_)
    grouped = groupby(said, key=lambda each: "model" if each.role == "assistant" else "user")
    return [
        {"role": role, "parts": [part for each in group for part in _parts(each, given)]} for role, group in grouped
    ]


def _parts(said: Message, given: Container[str]) -> list[Part]:
    """given: ids of calls that Gemini gave; where it gave none it is sent none."""
    if said.answers is not None:
        answer = {"name": said.answers.name, "response": {"result": said.whole}}
        return [{"functionResponse": _identified(said.answers, given) | answer}]
    signatures = said.carried.get("signatures", {})
    text = [{"text": said.whole} | _signed(signatures.get("text"))] if said.whole else []
    of_calls = [*signatures.get("calls", ()), *[None] * len(said.calls)]
    return [*text, *(_called(call, given) | _signed(of_calls[place]) for place, call in enumerate(said.calls))]


def _called(call: Call, given: Container[str]) -> Part:
    return {"functionCall": _identified(call, given) | {"name": call.name, "args": arguments_of(call)}}


def _identified(call: Call, given: Container[str]) -> Part:
    return {"id": call.id} if call.id in given else {}


def _signed(signature: str | None) -> Part:
    return {"thoughtSignature": signature} if signature else {}
