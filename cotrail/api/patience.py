"""How long the service waits for the rest of a request: uvicorn itself waits for ever."""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 30.0
"""How long a connection may take to send the head of a request, however slowly it comes."""

BODY_SECONDS = 60.0
"""How long nothing may come of the body of a request that isn't complete."""


class Patient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's protocol, which closes connections whose request stays half sent."""

    _timer: asyncio.TimerHandle | None = None
    _in_head = False

    def connection_made(self, transport: Any) -> None:
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        super().data_received(data)
        self._expect()

    def connection_lost(self, error: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._stop()
        super().connection_lost(error)

    def _expect(self) -> None:
        """Wait for the rest of a head from its beginning on, and for that of a body from its last bytes on."""
        in_head = self.cycle is None or self.cycle.response_complete
        if in_head and self._in_head and self._timer is not None:
            return
        self._stop()
        self._in_head = in_head
        if in_head or self.cycle.more_body:
            self._timer = self.loop.call_later(HEAD_SECONDS if in_head else BODY_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._timer = None
        if self.flow.read_paused:  # what the client sends waits until the body is read so far
            self._expect()
        else:
            self.transport.close()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
