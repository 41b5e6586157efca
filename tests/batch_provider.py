"""A provider with batch APIs in the forms of OpenAI, Anthropic and Mistral, over HTTP; it answers as a test tells it.

Beside batches it answers the same requests at once, so that both ways can be compared.
"""

import json
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.integration.served import QuietServer

Body = dict[str, Any]
Answer = Callable[[Body], str | tuple[int, Body]]
"""Returns the text that the model writes for a request, or a status and an error."""

Fault = Callable[[str, str], str | None]
"""Returns what goes wrong with a request, by its method and path: a status, `before` or `after` for a connection that
breaks off before or after it took effect, or None."""


class Provider:
    """The server; every batch ends as soon as it is asked about, unless it is held.

    answer: what the model says; fault: what goes wrong; held: whether batches stay under way; rearrange: what it makes
    of a batch's results; failing: the error with which batches of more lines fail than it `takes`.
    """

    def __init__(self, answer: Answer, fault: Fault = lambda method, path: None) -> None:
        self.answer = answer
        self.fault = fault
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Body] = {}
        self.held = False
        self.failing: Body | None = None
        self.takes = 1
        self.rearrange: Callable[[list[Body]], list[Body]] = list
        self.answered_live: list[Body] = []
        self._lock = threading.Lock()
        self._server = QuietServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def lines(self) -> list[str]:
        """The ids of all lines that it was sent, in all batches."""
        return [line["custom_id"] for batch in self.batches.values() for line in batch["lines"]]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def handle(self, method: str, path: str, content: bytes) -> tuple[int, Body | bytes]:
        with self._lock:
            for pattern, handler in _ROUTES[method]:
                if match := re.fullmatch(pattern, path.partition("?")[0].removeprefix("/v1")):
                    return handler(self, content, *match.groups())
        return 404, {"error": {"message": f"no {path}"}}

    def end(self, batch: Body) -> None:
        """Carries a batch out."""
        results = []
        for line in batch["lines"]:
            status, body = self.respond(line.get("body") or line["params"], batch["form"])
            results.append({"custom_id": line["custom_id"], "status": status, "body": body})
        batch["results"] = self.rearrange(results)
        batch["ended"] = True

    def respond(self, request: Body, form: str) -> tuple[int, Body]:
        """The status and the body of the response to a request."""
        said = self.answer(request)
        if not isinstance(said, str):
            return said
        return 200, message(said) if form == "anthropic" else chat(said)

    def _upload(self, content: bytes) -> tuple[int, Body]:
        name = f"file-{len(self.files)}"
        start = content.index(b"\r\n\r\n", content.index(b'name="file"')) + 4
        self.files[name] = content[start : content.index(b"\r\n--", start)]
        return 200, {"id": name}

    def _create(self, form: str, content: bytes) -> tuple[int, Body]:
        body = json.loads(content)
        if form == "anthropic":
            lines = body["requests"]
        else:
            file = body["input_file_id"] if form == "openai" else body["input_files"][0]
            lines = [json.loads(line) for line in self.files[file].splitlines()]
        name = f"batch-{len(self.batches)}"
        made = {"id": name, "form": form, "lines": lines, "metadata": body.get("metadata"), "ended": False}
        failed = {"errors": {"data": [self.failing]}} if self.failing and len(lines) > self.takes else {}
        self.batches[name] = made | failed | {"created_at": int(time.time())}
        return 200, _shown(self.batches[name])

    def _status(self, _: bytes, name: str) -> tuple[int, Body]:
        batch = self.batches.get(name)
        if batch is None:
            return 404, {"error": {"message": f"no batch {name}"}}
        if not batch["ended"] and not self.held:
            self.end(batch)
        return 200, _shown(batch)

    def _cancel(self, _: bytes, name: str) -> tuple[int, Body]:
        self.batches[name] |= {"cancelled": True, "results": [], "ended": True}
        return 200, _shown(self.batches[name])

    def _content(self, _: bytes, name: str) -> tuple[int, bytes]:
        kind, batch = name.split("-of-")
        done = [each for each in self.batches[batch]["results"] if (each["status"] == 200) == (kind == "output")]
        return 200, b"".join(json.dumps(_result(each)).encode() + b"\n" for each in done)

    def _results(self, _: bytes, name: str) -> tuple[int, bytes]:
        results = self.batches[name]["results"]
        return 200, b"".join(json.dumps(_anthropic_result(each)).encode() + b"\n" for each in results)

    def _list(self, _: bytes) -> tuple[int, Body]:
        for batch in self.batches.values():
            if not batch["ended"] and not self.held:
                self.end(batch)
        return 200, {"data": [_shown(batch) for batch in reversed(self.batches.values())], "has_more": False}

    def _live(self, form: str, content: bytes) -> tuple[int, Body]:
        body = json.loads(content)
        self.answered_live.append(body)
        return self.respond(body, form)


def expired(line: str) -> Body:
    """A result that says that a line wasn't carried out in time."""
    return {"custom_id": line, "status": 0, "body": None}


def chat(text: str, **usage: int) -> Body:
    """A chat completion."""
    counts = {"prompt_tokens": 7, "completion_tokens": 5} | usage
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": counts}


def message(text: str) -> Body:
    """A message of Anthropic's."""
    content = [{"type": "text", "text": text}]
    return {"content": content, "stop_reason": "end_turn", "usage": {"input_tokens": 7, "output_tokens": 5}}


def _shown(batch: Body) -> Body:
    """A batch as all three forms have it, each of which reads fields of its own."""
    done = [each for each in batch.get("results", []) if each["status"]]
    ended, total = batch["ended"], len(batch["lines"])
    if "errors" in batch:
        return {**{name: batch[name] for name in ("id", "metadata", "created_at", "errors")}, "status": "failed"}
    created = batch["created_at"]
    anthropic = batch["form"] == "anthropic"
    return {
        "id": batch["id"],
        "metadata": batch["metadata"],
        "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(created)) if anthropic else created,
        "status": {True: {"openai": "completed"}.get(batch["form"], "SUCCESS"), False: "in_progress"}[ended],
        "processing_status": "ended" if ended else "in_progress",
        "request_counts": {"processing": 0 if ended else total, "succeeded": total if ended else 0}
        if anthropic
        else {"completed": len(done), "failed": 0, "total": total},
        "completed_requests": len(done),
        "output_file_id": f"output-of-{batch['id']}" if ended else None,
        "error_file_id": f"error-of-{batch['id']}" if ended else None,
        "output_file": f"output-of-{batch['id']}" if ended else None,
        "error_file": f"error-of-{batch['id']}" if ended else None,
    }


def _result(done: Body) -> Body:
    if not done["status"]:
        return {"custom_id": done["custom_id"], "response": None, "error": {"code": "batch_expired", "message": "late"}}
    response = {"status_code": done["status"], "body": done["body"]}
    return {"custom_id": done["custom_id"], "response": response, "error": None}


def _anthropic_result(done: Body) -> Body:
    match done["status"]:
        case 200:
            result = {"type": "succeeded", "message": done["body"]}
        case 0:
            result = {"type": "expired"}
        case _:
            result = {"type": "errored", "error": done["body"]}
    return {"custom_id": done["custom_id"], "result": result}


_Handler = Callable[..., tuple[int, Body | bytes]]
_NAME = r"([\w.-]+)"
_ROUTES: dict[str, list[tuple[str, _Handler]]] = {
    "POST": [
        ("/files", lambda provider, content: provider._upload(content)),
        ("/batches", lambda provider, content: provider._create("openai", content)),
        ("/batch/jobs", lambda provider, content: provider._create("mistral", content)),
        ("/messages/batches", lambda provider, content: provider._create("anthropic", content)),
        (rf"/(?:batches|batch/jobs|messages/batches)/{_NAME}/cancel", Provider._cancel),
        ("/chat/completions", lambda provider, content: provider._live("openai", content)),
        ("/messages", lambda provider, content: provider._live("anthropic", content)),
    ],
    "GET": [
        ("/(?:batches|batch/jobs|messages/batches)", Provider._list),
        (rf"/(?:batches|batch/jobs|messages/batches)/{_NAME}", Provider._status),
        (rf"/files/{_NAME}/content", Provider._content),
        (rf"/messages/batches/{_NAME}/results", Provider._results),
    ],
}


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer("GET", b"")

        def do_POST(self) -> None:
            self._answer("POST", self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, method: str, content: bytes) -> None:
            fault = provider.fault(method, self.path)
            if fault == "before":
                self.close_connection = True
                return
            status: int
            body: Body | bytes
            if fault and fault.isdigit():
                status, body = int(fault), {"error": {"message": "not now"}}
            else:
                status, body = provider.handle(method, self.path, content)
            if fault == "after":
                self.close_connection = True
                return
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named so by the library
            pass

    return Handler
