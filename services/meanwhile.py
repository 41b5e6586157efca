"""Repeated callbacks while a block of code runs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread


@contextmanager
def meanwhile(tell: Callable[[float], None], seconds: float) -> Iterator[None]:
    """Calls `tell` from a thread every `seconds`, with the seconds that the block has taken, until the block ends."""
    over, began = Event(), time.monotonic()

    def run() -> None:
        try:
            while not over.wait(seconds):
                tell(time.monotonic() - began)
        except OSError:
            return  # the output is closed; the next print of the main thread raises for it

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
