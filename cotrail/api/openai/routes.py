"""The routes of OpenAI's API. Their bodies are OpenAI's, so that they aren't made from operations."""

import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec
from anyio import create_task_group, to_thread
from litestar import Request, Response, Router, get, post
from litestar.exceptions import HTTPException
from litestar.params import FromPath, JSONBody
from litestar.response import Stream

from cotrail.api.access import ANY_KEY, RESPOND, RESPONSE, note_made, scope_guard
from cotrail.api.event_streams import each_of, frame, in_threads, sent, streams_of, while_allowed
from cotrail.api.openai import requests
from cotrail.api.openai.chat import Completion, recorded
from cotrail.api.openai.chat import Response as OpenResponse
from cotrail.api.openai.requests import ChatRequest, ResponseRequest, ask_request, check_name, described, listed
from cotrail.api.requests import SLASH
from cotrail.errors import CotrailError
from cotrail.services.actor import Scope, actor
from cotrail.services.results import asking
from cotrail.services.results.answering import AnyAskEvent, Asked, AskedState, read_asked
from cotrail.services.runs import control
from cotrail.services.runs.requests import AskRequest
from cotrail.services.store import reading

AnyRequest = Request[Any, Any, Any]
Body = dict[str, Any]
Events = AsyncIterator[AnyAskEvent | None]


def _route(name: str, scope: Scope, *, own: bool = False) -> dict[str, Any]:
    return {"guards": [scope_guard(scope, own=own)], "opt": {"operation": name, "scope": scope}, "operation_id": name}


@get("/models", **_route("openai.models", Scope.READ), sync_to_thread=True)
def list_models() -> Body:
    """List what can be named as a model: systems with their corpora."""
    return {"object": "list", "data": listed()}


@get("/models/{name:str}", **_route("openai.model", Scope.READ), sync_to_thread=True)
def show_model(name: FromPath[str]) -> Body:
    """Describe a model; 404 where there is none of that name."""
    named = name.replace(SLASH, "/")
    check_name(named)
    return described(named)


@post("/chat/completions", **_route("openai.chat", Scope.SUBMIT), status_code=200)
async def complete(data: JSONBody[ChatRequest], request: AnyRequest) -> Response[Body] | Stream:
    """Answer the last message of a conversation."""
    question = await to_thread.run_sync(ask_request, data, data.messages)
    asked, events = await _ask(request, question)
    completion = Completion(data, asked)
    if data.stream:
        return sent(request, _lines(completion.chunks(events)), failed=_failed)
    return _answer(await _unless_gone(request, completion.whole(while_allowed(actor(), events))))


@post("/responses", **_route(RESPOND, Scope.SUBMIT), status_code=200)
async def respond(data: JSONBody[ResponseRequest], request: AnyRequest) -> Response[Body] | Stream:
    """Answer the last message of a conversation, in the background if that is asked for."""
    question = await to_thread.run_sync(ask_request, data, data.messages)
    if data.background and not data.stream:
        asked = await to_thread.run_sync(asking.begin_asking, question)
        note_made(asked)
        return _answer(_response(data, asked).now("queued"))
    asked, events = await _ask(request, question, keep=bool(data.background))
    note_made(asked)
    response = _response(data, asked)
    if data.stream:
        return sent(request, _named(response.events(events)), failed=partial(_failed_response, response))
    return _answer(await _unless_gone(request, response.whole(while_allowed(actor(), events))))


@get("/responses/{response_id:str}", **_route("openai.response", Scope.READ), sync_to_thread=True)
def show_response(response_id: FromPath[str]) -> Body:
    """Show a response as it is by now."""
    return recorded(_read(response_id))


@post(
    "/responses/{response_id:str}/cancel",
    **_route("openai.cancel", Scope.OPERATE, own=True),
    status_code=200,
    sync_to_thread=True,
)
def cancel_response(response_id: FromPath[str]) -> Body:
    """Cancel a response, unless it has ended."""
    state = _read(response_id)
    if state.state in ("queued", "in_progress"):
        control.cancel_run(state.run)
    return recorded(_read(response_id))


def router() -> Router:
    """All of them, with errors in OpenAI's form."""
    return Router(
        "/v1",
        route_handlers=[list_models, show_model, complete, respond, show_response, cancel_response],
        exception_handlers={CotrailError: requests.of_error, HTTPException: requests.of_http},
        opt={ANY_KEY: True},
        tags=["openai"],
    )


async def _ask(
    request: AnyRequest, question: AskRequest, *, keep: bool = False
) -> tuple[Asked, AsyncIterator[AnyAskEvent | None]]:
    """The run of a question, and what happens to it; keep: whether it continues when nobody listens."""
    streams_of(request).check()
    events = iter(asking.ask.function(question, keep=keep))
    asked = await in_threads(next, events)
    return asked, each_of(events, None)


def _read(response_id: str) -> AskedState:
    with reading() as connection:
        return read_asked(connection, response_id.removeprefix(RESPONSE))


def _response(request: ResponseRequest, asked: Asked) -> OpenResponse:
    return OpenResponse(asked.run, time.time(), request.model, asked.question)


def _answer(body: Body) -> Response[Body]:
    return Response(body, status_code=requests.NO_ANSWER if body.get("object") is None else 200)


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


async def _lines(chunks: AsyncIterator[Body | None]) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        yield b"" if chunk is None else _line(chunk)
    yield b"data: [DONE]\n\n"


def _line(chunk: Body) -> bytes:
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


def _failed(request: AnyRequest, error: CotrailError) -> bytes:
    return _line(requests.of_error(request, error).content)


def _failed_response(response: OpenResponse, request: AnyRequest, error: CotrailError) -> bytes:
    event = response.failed(requests.of_error(request, error).content["error"])
    return frame(event["type"], msgspec.json.encode(event))


async def _named(events: AsyncIterator[Body | None]) -> AsyncIterator[bytes]:
    async for event in events:
        yield b"" if event is None else frame(event["type"], msgspec.json.encode(event))
