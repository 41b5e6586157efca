"""`cotrail serve-corpus`: a corpus is served over HTTP in Search-R1's form, as for programs that train agents."""

import errno
import json
import socket
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from typing import Annotated, Any

from cotrail.cli.request_options import argument, option
from cotrail.cli.terminal.output import console
from cotrail.common.optional_packages import installed_with
from cotrail.common.processes import usable_cores
from cotrail.core.ports.retriever import Retriever
from cotrail.engines.retrieval.retrieve_server import answer, read_request
from cotrail.errors import CotrailError, InputError, TransientStepError, UnavailableError
from cotrail.services.access.grants import seen_corpora

with installed_with("api"):
    import uvicorn
    from litestar import Litestar, MediaType, Request, Response, get, post
    from litestar.concurrency import sync_to_thread
    from litestar.exceptions import HTTPException

SHUTDOWN_SECONDS = 10
"""How long requests under way may take once the server is asked to stop."""

WAITING = 2048
"""How many connections may wait until they are taken."""

THREADS_A_CORE = 4
"""Searches at once: those of a search server mostly wait, and those of an index in a folder lose little by it."""

AnyRequest = Request[Any, Any, Any]


def serve_corpus(
    name: Annotated[str, argument("serve_corpus.name")],
    *,
    host: Annotated[str, option("serve_corpus.host")] = "127.0.0.1",
    port: Annotated[int, option("serve_corpus.port")] = 8000,
) -> None:
    """Serve a corpus in the form of Search-R1's retrieval server, in this process until it is stopped.

    Nobody is asked for a token. Example: `cotrail serve-corpus mine --port 8000`
    """
    corpus = seen_corpora().open(name)
    with listening(host, port) as listener, ThreadPoolExecutor(THREADS_A_CORE * usable_cores()) as threads:
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{listener.getsockname()[1]}/retrieve"
        asked = json.dumps({"queries": ["a query"], "topk": 3, "return_scores": True})
        screen = console(stderr=True)
        screen.print(f"{name} is served at {url} until Ctrl-C. Ask it:", soft_wrap=True)
        screen.print(f"curl {url} -H 'Content-Type: application/json' -d '{asked}'", soft_wrap=True, markup=False)
        config = uvicorn.Config(
            application(name, corpus, threads),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        with suppress(KeyboardInterrupt):  # uvicorn has ended by then, and raises the signal again
            uvicorn.Server(config).run(sockets=[listener])


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; raises InputError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=WAITING)
    except OSError as error:
        reason = "is taken" if error.errno == errno.EADDRINUSE else f"can't be used ({error.strerror})"
        raise InputError(f"port {port} of {host} {reason}; name another with --port") from error
    # Connections inherit it. asyncio sets it only where a socket names its protocol, and answers would wait for 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def application(name: str, corpus: Retriever, threads: Executor) -> Litestar:
    """The server of a corpus; threads: search for the queries of all requests."""

    @post("/retrieve", status_code=HTTPStatus.OK)
    async def retrieve(request: AnyRequest) -> Response[bytes]:
        asked = read_request(await request.body())
        return Response(await sync_to_thread(answer, corpus, asked, threads), media_type=MediaType.JSON)

    @get("/health")
    async def health() -> dict[str, str]:
        return {"corpus": name, "revision": corpus.revision}

    handlers: Any = {CotrailError: _failed, HTTPException: _unread}
    return Litestar([retrieve, health], exception_handlers=handlers, openapi_config=None)


def _failed(_: AnyRequest, error: CotrailError) -> Response[dict[str, str]]:
    """The answer where a request can't be used, or a search failed."""
    match error:
        case InputError():
            status = HTTPStatus.BAD_REQUEST
        case UnavailableError() | TransientStepError():
            status = HTTPStatus.SERVICE_UNAVAILABLE
        case _:
            status = HTTPStatus.INTERNAL_SERVER_ERROR
    return Response({"detail": str(error)}, status_code=status)


def _unread(_: AnyRequest, error: HTTPException) -> Response[dict[str, str]]:
    """The answer where no path has what was asked for, or the body is too large."""
    there = 'POST /retrieve takes {"queries": [...], "topk": 3, "return_scores": true}, up to 10 MB'
    return Response({"detail": f"{error.detail}: {there}"}, status_code=error.status_code, headers=error.headers)
