"""Answers that are sent piece by piece while they are made."""

import asyncio
from collections.abc import AsyncIterator, Generator
from threading import Lock

from litestar.response import Stream

PIECE_BYTES = 2**16
"""Pieces are gathered until they have so many bytes: each is made in a thread, and sent on its own."""

Pieces = Generator[bytes, None, None]


def streamed(pieces: Pieces, media_type: str) -> Stream:
    """The answer of these pieces; what the first one raises is raised at once, so that the answer can say it."""
    return Stream(_sent(next(pieces, b""), _Gathering(pieces)), media_type=media_type)


class _Gathering:
    """Gathers pieces in threads, one at a time."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._turn = Lock()

    def some(self) -> bytes:
        """The next pieces; empty where there are none."""
        gathered = bytearray()
        with self._turn:
            for piece in self._pieces:
                gathered += piece
                if len(gathered) >= PIECE_BYTES:
                    break
        return bytes(gathered)

    def close(self) -> None:
        """End the making of pieces, which gives back what it holds, such as a connection."""
        with self._turn:
            self._pieces.close()


async def _sent(first: bytes, gathering: _Gathering) -> AsyncIterator[bytes]:
    try:
        yield first
        while piece := await asyncio.to_thread(gathering.some):
            yield piece
    finally:
        # Not awaited: where the client has gone, nothing may be awaited any more, and a piece may still be made.
        asyncio.get_running_loop().run_in_executor(None, gathering.close)
