"""The routes of OpenAI's API. Their bodies are OpenAI's, so that they aren't made from operations."""

import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from anyio import create_task_group, to_thread
from litestar import Request, Response, Router, get, post
from litestar.exceptions import HTTPException
from litestar.params import FromPath, JSONBody
from litestar.response import ServerSentEvent, ServerSentEventMessage

from cotrail.api.event_streams import each_of, in_threads
from cotrail.api.guards import needs
from cotrail.api.openai import errors
from cotrail.api.openai.chat import Completion
from cotrail.api.openai.model_names import ask_request, described, listed
from cotrail.api.openai.requests import ChatRequest, ResponseRequest
from cotrail.api.openai.responses import PREFIX, recorded
from cotrail.api.openai.responses import Response as OpenResponse
from cotrail.errors import CotrailError
from cotrail.services.access.actor import Scope
from cotrail.services.operations import asking, runs
from cotrail.services.runs.requests import AskRequest
from cotrail.services.store import reading
from cotrail.services.views.ask_events import AnyAskEvent, Asked
from cotrail.services.views.asked_questions import AskedState, read_asked

AnyRequest = Request[Any, Any, Any]
Body = dict[str, Any]


def _route(name: str, scope: Scope) -> dict[str, Any]:
    return {"guards": [needs(scope)], "opt": {"operation": name, "scope": scope}, "operation_id": name}


@get("/models", **_route("openai.models", Scope.READ), sync_to_thread=True)
def list_models() -> Body:
    """List what can be named as a model: systems with their corpora."""
    return {"object": "list", "data": listed()}


@get("/models/{name:str}", **_route("openai.model", Scope.READ))
async def show_model(name: FromPath[str]) -> Body:
    """Describe a model."""
    return described(name)


@post(
    "/chat/completions",
    **_route("openai.chat", Scope.SUBMIT),
    status_code=200,
)
async def complete(data: JSONBody[ChatRequest], request: AnyRequest) -> Response[Body] | ServerSentEvent:
    """Answer the last message of a conversation."""
    question = await to_thread.run_sync(ask_request, data, data.messages)
    asked, events = await _ask(question)
    completion = Completion(data, asked)
    if data.stream:
        return ServerSentEvent(_lines(completion.chunks(events)))
    return _answer(await _unless_gone(request, completion.whole(events)))


@post(
    "/responses",
    **_route("openai.respond", Scope.SUBMIT),
    status_code=200,
)
async def respond(data: JSONBody[ResponseRequest], request: AnyRequest) -> Response[Body] | ServerSentEvent:
    """Answer the last message of a conversation, in the background if that is asked for."""
    question = await to_thread.run_sync(ask_request, data, data.messages)
    if data.background and not data.stream:
        asked = await to_thread.run_sync(asking.begin, question)
        return _answer(_response(data, asked).now("queued"))
    asked, events = await _ask(question, keep=bool(data.background))
    response = _response(data, asked)
    if data.stream:
        return ServerSentEvent(_named(response.events(events)))
    return _answer(await _unless_gone(request, response.whole(events)))


@get(
    "/responses/{response_id:str}",
    **_route("openai.response", Scope.READ),
    sync_to_thread=True,
)
def show_response(response_id: FromPath[str]) -> Body:
    """Show a response as it is by now."""
    return recorded(_read(response_id))


@post(
    "/responses/{response_id:str}/cancel",
    **_route("openai.cancel", Scope.OPERATE),
    status_code=200,
    sync_to_thread=True,
)
def cancel_response(response_id: FromPath[str]) -> Body:
    """Cancel a response, unless it has ended."""
    state = _read(response_id)
    if state.state in ("queued", "in_progress"):
        runs.cancel(state.run)
    return recorded(_read(response_id))


def router() -> Router:
    """All of them, with errors in OpenAI's form."""
    return Router(
        "/v1",
        route_handlers=[list_models, show_model, complete, respond, show_response, cancel_response],
        exception_handlers={CotrailError: errors.of_error, HTTPException: errors.of_http},
        tags=["openai"],
    )


async def _ask(question: AskRequest, *, keep: bool = False) -> tuple[Asked, AsyncIterator[AnyAskEvent | None]]:
    """The run of a question, and what happens to it; keep: whether it goes on when nobody listens."""
    events = iter(asking.ask.function(question, keep=keep))
    asked = await in_threads(next, events)
    return asked, each_of(events, None)


def _read(response_id: str) -> AskedState:
    with reading() as connection:
        return read_asked(connection, response_id.removeprefix(PREFIX))


def _response(request: ResponseRequest, asked: Asked) -> OpenResponse:
    return OpenResponse(asked.run, time.time(), request.model, asked.question)


def _answer(body: Body) -> Response[Body]:
    return Response(body, status_code=errors.NO_ANSWER if body.get("object") is None else 200)


async def _unless_gone(request: AnyRequest, work: Any) -> Body:
    """What the work comes to; it is cut off where the client hangs up meanwhile."""
    result: Body = {}

    async def listen() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        group.cancel_scope.cancel()

    async with create_task_group() as group:
        group.start_soon(listen)
        result = await work
        group.cancel_scope.cancel()
    return result


async def _lines(chunks: AsyncIterator[Body]) -> AsyncIterator[ServerSentEventMessage]:
    async for chunk in chunks:
        yield ServerSentEventMessage(data=msgspec.json.encode(chunk).decode())
    yield ServerSentEventMessage(data="[DONE]")


async def _named(events: AsyncIterator[Body]) -> AsyncIterator[ServerSentEventMessage]:
    async for event in events:
        yield ServerSentEventMessage(event=event["type"], data=msgspec.json.encode(event).decode())
