"""The door to a server: operations that are called in this process are carried out there."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx2
from httpx2 import HTTPError

from cotrail.client.calls import PREFIX, Call, answer_of, call_of, error_of, events_of
from cotrail.errors import InputError, UnavailableError
from cotrail.services.operations.operation import Operation

R = TypeVar("R")

PATIENCE_SECONDS = 600.0
"""How long an answer may take: scores of large runs are read and computed first."""

CONNECT_SECONDS = 10.0


class RemoteDoor:
    """Carries out operations on a server.

    url: its address, without `/v1`; token: a token of its, empty for none.
    """

    def __init__(self, url: str, token: str = "") -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.url = url.rstrip("/")
        self._http = httpx2.Client(
            base_url=self.url, headers=headers, timeout=httpx2.Timeout(PATIENCE_SECONDS, connect=10)
        )

    def carry_out(self, operation: Operation[Any, R], arguments: Mapping[str, Any]) -> R:
        """What the operation answers; raises the error that the server answers with, UnavailableError where none."""
        call = call_of(operation, arguments, self.upload)
        if operation.answers == "events":
            return cast(R, self._events(operation, call))
        answer: R = answer_of(operation, self._send(call))
        return answer

    def upload(self, path: str) -> str:
        """Send a file, unless the server has it; returns the digest that stands for it in requests."""
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"{path} can't be read ({error.strerror}); check the path") from error
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        query = (("name", Path(path).name),)
        self._send(Call(method="PUT", path=f"{PREFIX}/files/{digest}", query=query, body=content))
        return digest

    def _events(self, operation: Operation[Any, Any], call: Call) -> Iterator[Any]:
        """The records of a stream as they come; who stops reading hangs up."""
        try:
            with self._http.stream(call.method, call.path, params=list(call.query), content=call.body) as response:
                if response.status_code >= 400:
                    raise error_of(response.status_code, response.read())
                yield from events_of(operation, response.iter_lines())
        except HTTPError as error:
            raise UnavailableError(f"the server at {self.url} doesn't answer ({error}); check the address") from error

    def _send(self, call: Call) -> bytes:
        try:
            response = self._http.request(call.method, call.path, params=list(call.query), content=call.body)
        except HTTPError as error:
            raise UnavailableError(f"the server at {self.url} doesn't answer ({error}); check the address") from error
        if response.status_code >= 400:
            raise error_of(response.status_code, response.content)
        return response.content
