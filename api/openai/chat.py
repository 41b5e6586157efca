"""Chat completions: `POST /v1/chat/completions`."""

import time
from collections.abc import AsyncIterator
from typing import Any

from cotrail.api.openai.errors import NO_ANSWER, error_body
from cotrail.api.openai.reasoning import Reasoning, citations
from cotrail.api.openai.requests import ChatRequest
from cotrail.services.views.ask_events import Answer, AnyAskEvent, Asked, Usage
from cotrail.services.views.asked_answers import end_of

REASONS = {"completed": "stop", "incomplete": "length"}
"""The reasons for which a completion ended, by the states of questions; in the others there is no completion."""


class Completion:
    """A completion as it comes about.

    request: what was asked for; asked: the run that answers it.
    """

    def __init__(self, request: ChatRequest, asked: Asked) -> None:
        self._request = request
        self._reasoning = Reasoning()
        self._head = {
            "id": f"chatcmpl-{asked.run}",
            "created": int(time.time()),
            "model": request.model,
            "metadata": {"run": asked.run, "question": asked.question},
        }

    async def whole(self, events: AsyncIterator[AnyAskEvent | None]) -> dict[str, Any]:
        """The completion, or the error, once the question has ended."""
        answer = None
        async for event in events:
            self._reasoning.take(event)
            answer = event if isinstance(event, Answer) else answer
        if answer is None or end_of(answer) not in REASONS:
            return failure_of(answer)
        message = {
            "role": "assistant",
            "content": answer.answer,
            "refusal": None,
            "reasoning_content": self._reasoning.text,
            "annotations": _annotations(answer),
        }
        choice = {"index": 0, "message": message, "finish_reason": REASONS[end_of(answer)], "logprobs": None}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": usage_of(answer.usage)}

    async def chunks(self, events: AsyncIterator[AnyAskEvent | None]) -> AsyncIterator[dict[str, Any]]:
        """Its chunks: reasoning as it is written, then the answer with its sources."""
        yield self._chunk({"role": "assistant", "content": ""})
        async for event in events:
            if piece := self._reasoning.take(event):
                yield self._chunk({"reasoning_content": piece})
            if not isinstance(event, Answer):
                continue
            if end_of(event) not in REASONS:
                yield failure_of(event)
                return
            yield self._chunk({"content": event.answer, "annotations": _annotations(event)})
            yield self._chunk({}, REASONS[end_of(event)])
            options = self._request.stream_options
            if options and options.include_usage:
                yield {**self._chunk({}), "choices": [], "usage": usage_of(event.usage)}

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice]}


def failure_of(answer: Answer | None) -> dict[str, Any]:
    """The error that stands for a question without an answer; none that clients take for a passing one."""
    if answer is None:
        return error_body("the question wasn't followed to its end", NO_ANSWER, "internal_error")
    return error_body(f"the question is {answer.status}: {answer.reason or 'its run was'}", NO_ANSWER, answer.status)


def usage_of(usage: Usage) -> dict[str, Any]:
    """The tokens of all steps."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.generated,
        "total_tokens": usage.prompt + usage.generated,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _annotations(answer: Answer) -> list[dict[str, Any]]:
    return [{"type": "url_citation", "url_citation": each} for each in citations(answer)]
