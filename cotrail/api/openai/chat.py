"""Chat completions: `POST /v1/chat/completions`."""

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from cotrail.api.openai.requests import NO_ANSWER, ChatRequest, error_body
from cotrail.services.results import answering
from cotrail.services.results.steps import ShownStep

# What a system did on the way to its answer, as the reasoning of a model.

SOURCE = "urn:cotrail:paragraph:"
"""What precedes a paragraph's id in the address of a source that has no other."""


class Reasoning:
    """The text of the reasoning, as it grows.

    A search is a line with what it found; what models think and write stands there as it is written. Each step ends
    with a line break.
    """

    def __init__(self) -> None:
        self.text = ""
        self._told: dict[int, str] = {}

    def take(self, event: answering.AskEvent | None) -> str:
        """What an event adds to it."""
        piece = ""
        match event:
            case answering.AskToken():
                # Steps may write side by side; only one of them is streamed as it writes, so that texts don't mix.
                if not self._told or event.step in self._told:
                    self._told[event.step] = self._told.get(event.step, "") + event.text
                    piece = event.text
            case answering.AskStepEnded():
                piece = self._rest_of(event.step)
        self.text += piece
        return piece

    def _rest_of(self, step: ShownStep) -> str:
        sent, whole = self._told.pop(step.sequence, ""), words_of(step)
        if not sent:
            return f"{whole}\n" if whole else ""
        return f"{whole[len(sent) :]}\n" if whole.startswith(sent) else "\n"


def words_of(step: ShownStep) -> str:
    """What a step did, in words: its thoughts and its text, or what it found."""
    return "\n".join(_words(step))


def _words(step: ShownStep) -> Iterator[str]:
    if titles := [hit.paragraph.title for hit in step.view.found]:
        yield f"{step.kind} “{step.view.asked}”: {'; '.join(titles)}"
    for part in step.view.parts:
        text = getattr(part, "text", "")
        if text and part.__struct_config__.tag in ("thoughts", "text"):
            yield text


def citations(answer: answering.Answer) -> list[dict[str, Any]]:
    """The paragraphs that a question collected; they stand behind the whole answer, and not behind a part of it."""
    end = len(answer.answer or "")
    return [
        {
            "start_index": 0,
            "end_index": end,
            "title": source.title,
            "url": source.id if source.id.startswith(("http://", "https://")) else f"{SOURCE}{source.id}",
            "paragraph_id": source.id,
            "text": source.text,
        }
        for source in answer.sources
    ]


REASONS = {"completed": "stop", "incomplete": "length"}
"""The reasons for which a completion ended, by the states of questions; in the others there is no completion."""


class Completion:
    """A completion as it comes about.

    request: what was asked for; asked: the run that answers it.
    """

    def __init__(self, request: ChatRequest, asked: answering.Asked) -> None:
        self._request = request
        self._reasoning = Reasoning()
        self._head = {
            "id": f"chatcmpl-{asked.run}",
            "created": int(time.time()),
            "model": request.model,
            "metadata": {"run": asked.run, "question": asked.question},
        }

    async def whole(self, events: AsyncIterator[answering.AnyAskEvent | None]) -> dict[str, Any]:
        """The completion, or the error, once the question has ended."""
        answer = None
        async for event in events:
            self._reasoning.take(event)
            answer = event if isinstance(event, answering.Answer) else answer
        if answer is None or answering.end_of(answer) not in REASONS:
            return failure_of(answer)
        message = {
            "role": "assistant",
            "content": answer.answer,
            "refusal": None,
            "reasoning_content": self._reasoning.text,
            "annotations": _annotations(answer),
        }
        choice = {"index": 0, "message": message, "finish_reason": REASONS[answering.end_of(answer)], "logprobs": None}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": usage_of(answer.usage)}

    async def chunks(self, events: AsyncIterator[answering.AnyAskEvent | None]) -> AsyncIterator[dict[str, Any] | None]:
        """Its chunks: reasoning as it is written, then the answer with its sources; None while nothing happens."""
        yield self._chunk({"role": "assistant", "content": ""})
        async for event in events:
            if piece := self._reasoning.take(event):
                yield self._chunk({"reasoning_content": piece})
            if event is None:
                yield None
            if not isinstance(event, answering.Answer):
                continue
            if answering.end_of(event) not in REASONS:
                yield failure_of(event)
                return
            yield self._chunk({"content": event.answer, "annotations": _annotations(event)})
            yield self._chunk({}, REASONS[answering.end_of(event)])
            options = self._request.stream_options
            if options and options.include_usage:
                yield {**self._chunk({}), "choices": [], "usage": usage_of(event.usage)}

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice]}


def failure_of(answer: answering.Answer | None) -> dict[str, Any]:
    """The error that stands for a question without an answer; none that clients take for a passing one."""
    if answer is None:
        return error_body("the question wasn't followed to its end", NO_ANSWER, "internal_error")
    return error_body(f"the question is {answer.status}: {answer.reason or 'its run was'}", NO_ANSWER, answer.status)


def usage_of(usage: answering.AskUsage) -> dict[str, Any]:
    """The tokens of all steps."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.generated,
        "total_tokens": usage.prompt + usage.generated,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _annotations(answer: answering.Answer) -> list[dict[str, Any]]:
    return [{"type": "url_citation", "url_citation": each} for each in citations(answer)]
