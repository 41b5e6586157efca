"""The process that started this one, which waits for its standard input as long as that lives."""

import os
import threading

STDIN = 0


def end_with_parent() -> None:
    """End this process at once when its standard input closes: the one that started it is gone, or wants it to end."""
    threading.Thread(target=_wait, name="parent", daemon=True).start()


def _wait() -> None:
    # Not by `sys.stdin`: a thread that reads from it when the interpreter ends makes that fail.
    while os.read(STDIN, 1024):
        pass
    os._exit(3)
