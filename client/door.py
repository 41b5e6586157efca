"""The door to a server: operations that are called in this process are carried out there."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, cast

import httpx2
from httpx2 import HTTPError
from msgspec.structs import replace
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

from cotrail.client.calls import Call, answer_of, call_of, error_of, events_of
from cotrail.client.following import SILENT_SECONDS, Follower
from cotrail.client.uploading import Uploading
from cotrail.errors import TooManyRequestsError, UnavailableError
from cotrail.services.operations.operation import Operation

R = TypeVar("R")

PATIENCE_SECONDS = 600.0
"""How long an answer may take: scores of large runs are read and computed first."""

CONNECT_SECONDS = 10.0

MOST_TRIES = 4
"""How often a request is sent that may be sent again."""

PAUSE_SECONDS = 0.25
"""Half the pause after the first try; each is twice the one before, unless the server asks for a longer one."""

LONGEST_PAUSE = 60.0
"""The longest pause that a server may ask for, in seconds."""


class RemoteDoor:
    """Carries out operations on a server.

    url: its address, without `/v1`; token: a token of its, empty for none. pause: seconds before it is asked again.
    """

    def __init__(self, url: str, token: str = "", pause: float = PAUSE_SECONDS) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.url = url.rstrip("/")
        self._again = Retrying(
            retry=retry_if_exception_type((UnavailableError, TooManyRequestsError)),
            stop=stop_after_attempt(MOST_TRIES),
            wait=lambda state: max(_asked_for(state), pause * 2**state.attempt_number),
            reraise=True,
        )
        self._http = httpx2.Client(base_url=self.url, headers=headers)

    def carry_out(self, operation: Operation[Any, R], arguments: Mapping[str, Any]) -> R:
        """What the operation answers; raises the error that the server answers with, UnavailableError where none."""
        call = call_of(operation, arguments, self.upload)
        return cast("R", self._answer(operation, call))

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def upload(self, path: str) -> str:
        """Send a file or a folder, unless the server has it; returns the reference that stands for it in requests."""
        return Uploading(self._received).upload(path)

    def _answer(self, operation: Operation[Any, Any], call: Call) -> Any:
        if operation.answers == "stream":
            return self._pieces(call)
        if operation.answers == "events":
            followed = operation.method == "GET"
            return iter(Follower(operation, partial(self._lines, call))) if followed else self._events(operation, call)
        return answer_of(operation, self._send(call))

    def _events(self, operation: Operation[Any, Any], call: Call) -> Iterator[Any]:
        """The records of a stream as they come; who stops reading hangs up."""
        with self._answered(call) as response:
            yield from events_of(operation, response.iter_lines())

    @contextmanager
    def _lines(self, call: Call, last: str) -> Iterator[Iterator[str]]:
        """The lines of a stream behind the event of this id."""
        following = replace(call, headers=(*call.headers, *((("Last-Event-ID", last),) if last else ())))
        with self._answered(following, SILENT_SECONDS) as response:
            yield response.iter_lines()

    def _send(self, call: Call) -> bytes:
        """Send a request, again where that is safe and may help; returns the body of the answer."""
        return self._again(self._received, call) if call.repeatable else self._received(call)

    def _received(self, call: Call) -> bytes:
        with self._answered(call) as response:
            return response.read()

    def _pieces(self, call: Call) -> Iterator[bytes]:
        with self._answered(call) as response:
            yield from response.iter_bytes()

    @contextmanager
    def _answered(self, call: Call, patience: float = PATIENCE_SECONDS) -> Iterator[httpx2.Response]:
        """The answer to a request, whose body is still to be read; patience: how many seconds it may be silent."""
        timeout = httpx2.Timeout(patience, connect=CONNECT_SECONDS)
        headers = {**dict(call.headers), **({} if call.body is None else {"Content-Type": call.media_type})}
        try:
            with self._http.stream(
                call.method, call.path, params=list(call.query), content=call.body, headers=headers, timeout=timeout
            ) as response:
                if response.status_code >= 400:
                    raise error_of(response.status_code, response.read(), _seconds(response))
                yield response
        except HTTPError as error:
            raise UnavailableError(f"the server at {self.url} doesn't answer ({error}); check the address") from error


def _seconds(response: httpx2.Response) -> float | None:
    """The pause that an answer asks for."""
    asked = response.headers.get("Retry-After", "")
    return float(asked) if asked.isdecimal() else None


def _asked_for(state: RetryCallState) -> float:
    """The pause that the last answer asked for."""
    error = state.outcome.exception() if state.outcome else None
    return min(getattr(error, "seconds", None) or 0.0, LONGEST_PAUSE)
