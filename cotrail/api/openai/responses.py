"""Responses: `POST /v1/responses`, and those that are answered in the background."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from cotrail.api.access import RESPONSE
from cotrail.api.openai.chat import Reasoning, citations, failure_of
from cotrail.api.openai.model_names import name_of
from cotrail.services.results.answering import Answer, AnyAskEvent, AskedState, AskUsage, State, end_of


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
