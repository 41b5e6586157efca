"""A process that another one started ends with it, and by itself without a complaint."""

import subprocess
import sys

BEGIN = "from cotrail.common.processes import end_with_parent; end_with_parent(); "


def started(then: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", BEGIN + then], stdin=subprocess.PIPE, stderr=subprocess.PIPE)


def test_it_ends_by_itself_while_the_other_lives() -> None:
    # Its thread waits for its standard input by then.
    with started("import time; time.sleep(0.3)") as process:
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_it_ends_with_the_other() -> None:
    with started("import threading; threading.Event().wait()") as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 3
