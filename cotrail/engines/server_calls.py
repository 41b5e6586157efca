"""Calls of an engine to its server, each of which is answered as a whole."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar
from weakref import finalize

import msgspec
from msgspec import Struct

from cotrail.core.ports.rate_limiter import Need, RateLimiter
from cotrail.engines.language_models.served.client import ServerClient
from cotrail.engines.language_models.served.event_loop import EventLoopThread
from cotrail.engines.language_models.served.pacing import Pacing
from cotrail.engines.language_models.served.protocols.delta import bearer
from cotrail.engines.language_models.token_counts import estimated_tokens
from cotrail.engines.server_address import TextServer
from cotrail.errors import TransientStepError

Answer = TypeVar("Answer")

MOST_SHOWN = 10
"""Indexes that an error names at most."""


class Usage(Struct, frozen=True):
    """What a request took, as servers say it."""

    total_tokens: int | None = None


class Metered(Struct, frozen=True):
    """An answer that may say what its request took."""

    usage: Usage | None = None


def by_index(answers: Iterable[tuple[int, Answer]], count: int) -> list[Answer]:
    """Answers in the order of the texts that they are about; raises TransientStepError unless there is one for each."""
    pairs = list(answers)
    if sorted(index for index, _ in pairs) != list(range(count)):
        given = ", ".join(str(index) for index, _ in pairs[:MOST_SHOWN]) + ", ..." * (len(pairs) > MOST_SHOWN)
        raise TransientStepError(
            f"the server was sent {count} texts, numbered from 0, and answered {len(pairs)}: {given or 'none'}"
        )
    return [answer for _, answer in sorted(pairs, key=lambda pair: pair[0])]


Form = TypeVar("Form")
Item = TypeVar("Item")
Done = TypeVar("Done")


class ServerCalls:
    """Asks a server; safe for many threads, and no request is sent before the first call.

    limiter: shares out what the server's account may use, where a provider runs it.
    Raises BlockedError where its API key isn't set.
    """

    def __init__(self, server: TextServer, limiter: RateLimiter) -> None:
        self._server = server
        self._url = server.url + server.path
        self._pacing = Pacing(server, limiter) if server.is_hosted else None
        self._client = ServerClient(server, bearer, self._pacing.learn if self._pacing else None)
        self._event_loop = EventLoopThread(self._client)
        # The thread would otherwise outlive the engine.
        finalize(self, self._event_loop.close)

    def ask(self, body: dict[str, Any], form: type[Form], texts: Iterable[str]) -> Form:
        """The answer to a request; texts: those in it, of which tokens are reserved.

        Raises StepError, TransientStepError, UnavailableError, BlockedError, and Interrupted.
        """
        send = partial(self._event_loop.run, partial(self._client.ask, self._url, body | self._server.extra))
        if self._pacing is None:
            return self._read(send(), form)
        need = Need(input_tokens=sum(map(estimated_tokens, texts)))
        content, reserved = self._pacing.send(need, self._event_loop.sleep, send)
        answer = self._read(content, form)
        # Without a count of the server's, the estimate that was reserved stays as it is.
        usage = answer.usage if isinstance(answer, Metered) else None
        if usage and usage.total_tokens is not None:
            self._pacing.settle(need, reserved, Need(input_tokens=usage.total_tokens))
        return answer

    def at_once(self, work: Callable[[Item], Done], items: Sequence[Item]) -> list[Done]:
        """What `work` returns for each item, of which as many are under way as the table allows; raises as `work`."""
        if len(items) < 2:
            return list(map(work, items))
        with ThreadPoolExecutor(min(len(items), self._server.in_flight)) as pool:
            return list(pool.map(work, items))

    def interrupt(self) -> None:
        """Ends every call, now and from now on, with Interrupted."""
        self._event_loop.interrupt()

    def _read(self, content: bytes, form: type[Form]) -> Form:
        try:
            return msgspec.json.decode(content, type=form)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise TransientStepError(
                f"{self._url} doesn't answer in the form of its API ({error}): look at `url` and `api` in the table of "
                f"{self._server.model}"
            ) from None
