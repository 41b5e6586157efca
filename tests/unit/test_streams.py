"""Streams and exports: they end with the token of the one who asked, and say now and then that they are still there."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator
from typing import Any

import anyio
import pytest

from cotrail.api import event_streams, requests
from cotrail.api.event_streams import HEARTBEAT, Streams, _told, while_allowed
from cotrail.errors import CotrailError, UnauthenticatedError, UnavailableError
from cotrail.services.access import tokens
from cotrail.services.actor import ALL_SCOPES, LOCAL, Actor, acting

TOKEN = Actor(name="a", project="team", scopes=ALL_SCOPES, token="0" * 12)


@pytest.fixture
def valid(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Whether the token is valid, as the store says."""
    said: dict[str, Any] = {"valid": True}

    def is_valid(_: str) -> bool:
        if isinstance(said["valid"], Exception):
            raise said["valid"]
        return bool(said["valid"])

    monkeypatch.setattr(tokens, "is_valid", is_valid)
    monkeypatch.setattr("cotrail.api.event_streams.LOOK_SECONDS", 0.0)
    return said


async def taken(coming: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in coming]


def test_what_comes_ends_with_its_token(valid: dict[str, Any]) -> None:
    closed: list[bool] = []

    async def coming() -> AsyncGenerator[int, None]:
        try:
            for number in range(4):
                valid["valid"] = number < 3
                yield number
        finally:
            closed.append(True)

    assert anyio.run(taken, while_allowed(LOCAL, coming())) == [0, 1, 2, 3]
    told: list[bytes] = []

    def failed(error: CotrailError) -> bytes:
        assert isinstance(error, UnauthenticatedError)
        return b"refused"

    async def tell() -> None:
        pieces = (str(each).encode() async for each in while_allowed(TOKEN, coming()))
        told.extend([each async for each in _told(Streams(), pieces, None, failed)])

    anyio.run(tell)
    assert (told, closed) == ([b"0", b"1", b"2", b"refused"], [True, True])


def test_a_store_that_is_away_ends_no_stream(valid: dict[str, Any]) -> None:
    async def coming() -> AsyncIterator[int]:
        yield 1

    valid["valid"] = UnavailableError("away")
    assert anyio.run(taken, while_allowed(TOKEN, coming())) == [1]


def test_an_export_breaks_off_with_its_token(valid: dict[str, Any]) -> None:
    closed: list[bool] = []

    def pieces() -> Generator[bytes, None, None]:
        try:
            yield b"a"
            valid["valid"] = False
            yield b"b"
        finally:
            closed.append(True)

    async def export() -> None:
        with acting(TOKEN):
            answer: Any = requests.streamed(pieces(), "text/plain")
        assert await anext(answer.iterator) == b"a"
        with pytest.raises(UnauthenticatedError):
            await anext(answer.iterator)

    anyio.run(export)
    assert closed == [True]


def test_a_stream_in_which_nothing_happens_says_that_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing() -> AsyncGenerator[bytes, None]:
        for _ in range(3):
            yield b""

    monkeypatch.setattr(event_streams, "HEARTBEAT_SECONDS", 0.0)
    assert anyio.run(taken, _told(Streams(), nothing(), None, lambda _: b"")) == [HEARTBEAT] * 3
