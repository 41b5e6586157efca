"""Saying something while work that says nothing itself takes long."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread


@contextmanager
def meanwhile(tell: Callable[[float], None], seconds: float) -> Iterator[None]:
    """While the block runs, tells every so many seconds how many it has taken; no more once the block is left."""
    over, began = Event(), time.monotonic()

    def run() -> None:
        try:
            while not over.wait(seconds):
                tell(time.monotonic() - began)
        except OSError:
            return  # nobody reads any more, which whoever prints next finds out too

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
