"""Python's garbage collector in cotrail's processes."""

import atexit
import gc

THRESHOLD = 100_000
"""The number of new objects after which it looks for reference cycles; messages, rows and pages leave hardly any."""


def collect_seldom() -> None:
    """Have it look for cycles seldom, and never among what there is by now: what is loaded stays.

    Nor does it look through everything as the process ends, which would take as long as a third of a short command.
    """
    gc.freeze()
    gc.set_threshold(THRESHOLD, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)
