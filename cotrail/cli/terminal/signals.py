"""Signals that end a command: it leaves as by Ctrl-C, so that what it began is put in order."""

import signal
import sys
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)


def leave_in_order() -> None:
    """Have these signals raise SystemExit in the main thread, unless the parent process had them ignored.

    Python's own way would be to end at once, and as the first process of a container not at all.
    """
    for number in ENDING:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _leave)


def _leave(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)
