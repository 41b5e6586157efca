"""Chat completions and responses: `POST /v1/chat/completions` and `POST /v1/responses`."""

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from cotrail.api.access import RESPONSE
from cotrail.api.openai.requests import NO_ANSWER, ChatRequest, error_body, name_of
from cotrail.services.results import answering
from cotrail.services.results.answering import Answer, AnyAskEvent, AskedState, AskUsage, State, end_of
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
    """A completion as it comes about; request: what was asked for; asked: the run that answers it."""

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


class Response:
    """A response as it comes about; model: the name that it was asked for by."""

    def __init__(self, run: str, created_at: float, model: str, question: str) -> None:
        self.run = run
        self._reasoning = Reasoning()
        self._number = 0
        self._head = {
            "id": f"{RESPONSE}{run}",
            "object": "response",
            "created_at": created_at,
            "model": model,
            "metadata": {"run": run, "question": question},
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
        }

    async def whole(self, events: AsyncIterator[AnyAskEvent | None]) -> dict[str, Any]:
        """The response once the question has ended."""
        answer = None
        async for event in events:
            self._reasoning.take(event)
            answer = event if isinstance(event, Answer) else answer
        return self.now(end_of(answer) if answer else "failed", answer)

    def now(self, state: State, answer: Answer | None = None) -> dict[str, Any]:
        """The response in a state; answer: where it has ended."""
        done = answer is not None and state in ("completed", "incomplete")
        reasoning = [self._reasoning_item()] if self._reasoning.text else []
        output = [*reasoning, self._message(answer)] if answer and done else reasoning
        return {
            **self._head,
            "status": state,
            "output": output,
            "error": _error(answer) if state == "failed" else None,
            "incomplete_details": {"reason": "max_output_tokens"} if state == "incomplete" else None,
            "usage": _usage(answer.usage) if answer else None,
        }

    async def events(self, events: AsyncIterator[AnyAskEvent | None]) -> AsyncIterator[dict[str, Any] | None]:
        """Its events: reasoning as it is written, then the answer with its sources; None while nothing happens."""
        yield self._event("response.created", response=self.now("queued"))
        yield self._event("response.in_progress", response=self.now("in_progress"))
        yield self._event("response.output_item.added", output_index=0, item=self._reasoning_item())
        place = {"item_id": self._id("rs"), "output_index": 0, "content_index": 0}
        async for event in events:
            if piece := self._reasoning.take(event):
                yield self._event("response.reasoning_text.delta", **place, delta=piece)
            if event is None:
                yield None
            if isinstance(event, Answer):
                yield self._event("response.reasoning_text.done", **place, text=self._reasoning.text)
                yield self._event("response.output_item.done", output_index=0, item=self._reasoning_item())
                for item_events in self._answer_events(event):
                    yield item_events

    def failed(self, error: Mapping[str, Any]) -> dict[str, Any]:
        """The event that ends its events where they can't go on."""
        return self._event("error", **{name: error[name] for name in ("code", "message", "param")})

    def replayed(self, state: AskedState) -> dict[str, Any]:
        """The response as it is recorded."""
        for step in state.steps:
            self._reasoning.take(step)
        ended = state.state not in ("queued", "in_progress")
        return self.now(state.state, state.answer if ended else None)

    def _answer_events(self, answer: Answer) -> list[dict[str, Any]]:
        state = end_of(answer)
        ended = [(f"response.{state}", {"response": self.now(state, answer)})]
        if state in ("failed", "cancelled"):
            # There is no event for a response that was cancelled.
            ended = [("response.failed", {"response": self.now(state, answer)})]
            return [self._event(name, **fields) for name, fields in ended]
        item, [part] = self._message(answer), self._message(answer)["content"]
        place = {"item_id": item["id"], "output_index": 1, "content_index": 0}
        begun = {**item, "status": "in_progress", "content": []}
        annotations = [
            ("response.output_text.annotation.added", {**place, "annotation_index": number, "annotation": each})
            for number, each in enumerate(part["annotations"])
        ]
        item_events: list[tuple[str, dict[str, Any]]] = [
            ("response.output_item.added", {"output_index": 1, "item": begun}),
            ("response.content_part.added", {**place, "part": {**part, "text": "", "annotations": []}}),
            ("response.output_text.delta", {**place, "delta": part["text"], "logprobs": []}),
            *annotations,
            ("response.output_text.done", {**place, "text": part["text"], "logprobs": []}),
            ("response.content_part.done", {**place, "part": part}),
            ("response.output_item.done", {"output_index": 1, "item": item}),
            *ended,
        ]
        return [self._event(name, **fields) for name, fields in item_events]

    def _event(self, name: str, **fields: Any) -> dict[str, Any]:
        self._number += 1
        return {"type": name, "sequence_number": self._number - 1, **fields}

    def _id(self, kind: str) -> str:
        return f"{kind}_{self.run}"

    def _reasoning_item(self) -> dict[str, Any]:
        content = [{"type": "reasoning_text", "text": self._reasoning.text}] if self._reasoning.text else []
        return {"id": self._id("rs"), "type": "reasoning", "summary": [], "content": content}

    def _message(self, answer: Answer) -> dict[str, Any]:
        annotations = [{"type": "url_citation", **each} for each in citations(answer)]
        text = {"type": "output_text", "text": answer.answer or "", "annotations": annotations, "logprobs": []}
        return {
            "id": self._id("msg"),
            "type": "message",
            "role": "assistant",
            "status": "completed" if end_of(answer) == "completed" else "incomplete",
            "content": [text],
        }


def recorded(state: AskedState) -> dict[str, Any]:
    """The response of a question that was asked before."""
    model = name_of(state.system, state.corpora, state.model)
    return Response(state.run, state.created_at.timestamp(), model, "asked").replayed(state)


def _error(answer: Answer | None) -> dict[str, Any]:
    error = failure_of(answer)["error"]
    return {"code": error["code"], "message": error["message"]}


def _usage(usage: AskUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.generated,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.generated,
    }
