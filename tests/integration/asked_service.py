"""The service in this process, asked from the machine itself or from elsewhere, on a home with a scripted model."""

import atexit
import hashlib
import json
import socket
from functools import cache
from pathlib import Path
from typing import Any

from litestar import Litestar
from litestar.enums import ScopeType
from litestar.testing import TestClient
from litestar.types import Receive, Scope, Send

from cotrail.api.app import application

HERE = "http://127.0.0.1:8420"


@cache
def loopback() -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection of this account over loopback, the client's first: the kernel is asked whose it is."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ends = socket.create_connection(listener.getsockname()), listener.accept()[0]
    for end in ends:
        atexit.register(end.close)
    return ends


class FromHere:
    """An application that takes every request for one that came over a connection from this machine."""

    def __init__(self, app: Litestar) -> None:
        self.app = app
        self._client, self._server = (end.getsockname() for end in loopback())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP:
            scope["client"], scope["server"] = self._client, self._server
        await self.app(scope, receive, send)


def service(*, here: bool = True, url: str = HERE) -> "TestClient[Any]":
    """A client of the service; here: on its machine."""
    app = application()
    return TestClient(FromHere(app) if here else app, base_url=url, raise_server_exceptions=False)


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def write_home(home: Path, questions: int = 2) -> dict[str, Any]:
    """Writes a home with the model `scripted`; returns the request for a run of that many questions."""
    home.mkdir(exist_ok=True)
    (home / "script.json").write_text(json.dumps({"name": "writer", "questions": {}, "default": {"answer": "Marlow"}}))
    table = 'engine = "scripted"\npath = "script.json"\n'
    (home / "models.toml").write_text(f"[models.scripted]\n{table}[models.other]\n{table}")
    lines = [json.dumps({"id": f"q{n}", "question": f"Who is {n}?", "answers": ["Marlow"]}) for n in range(questions)]
    (home / "questions.jsonl").write_text("\n".join(lines))
    digest = f"sha256:{hashlib.sha256((home / 'questions.jsonl').read_bytes()).hexdigest()}"
    return {"system": "zero-shot", "dataset": "jsonl", "questions": digest, "model": "scripted"}


def upload(client: "TestClient[Any]", home: Path, headers: dict[str, str]) -> None:
    """Uploads the questions of such a request."""
    content = (home / "questions.jsonl").read_bytes()
    path = f"/v1/files/sha256:{hashlib.sha256(content).hexdigest()}?name=questions.jsonl"
    assert client.put(path, content=content, headers=headers).status_code < 300
