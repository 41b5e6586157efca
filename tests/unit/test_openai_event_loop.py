"""Requests to a server share a loop, which nothing that one of them does may end."""

from collections.abc import Coroutine
from typing import Any

import pytest

from cotrail.engines.language_models.served.event_loop import EventLoopThread
from cotrail.errors import TransientStepError
from tests.cases import each_case


class Resource:
    async def aclose(self) -> None:
        """There is nothing to close."""


class Panic(BaseException):
    """As libraries in Rust raise it: no `Exception`."""


async def answered() -> str:
    return "answered"


@each_case(("kind", "met"), [(Panic, Panic), (SystemExit, TransientStepError), (KeyboardInterrupt, TransientStepError)])
def test_a_panic_is_its_own_requests_and_the_loop_goes_on(kind: type[BaseException], met: type[BaseException]) -> None:
    def panicking() -> Coroutine[Any, Any, str]:
        async def work() -> str:
            raise kind("the library is at fault")

        return work()

    bridge = EventLoopThread(Resource())
    with pytest.raises(met, match="the library is at fault"):
        bridge.run(panicking)
    assert bridge.run(answered) == "answered"
    bridge.close()
