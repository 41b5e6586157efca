"""How the C library hands out a worker's memory, in processes of their own."""

import os
import platform
import subprocess
import sys

import pytest

from cotrail.common.processes import TUNED

THREADS, PIECES, BYTES = 20, 5, 600

PROGRAM = f"""
import ctypes
import threading

C = ctypes.CDLL(None)
C.malloc.restype = ctypes.c_void_p
C.free.argtypes = [ctypes.c_void_p]

class Usage(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    _fields_ = [(name, ctypes.c_size_t) for name in names]

C.mallinfo2.restype = Usage
done, ended = threading.Barrier({THREADS} + 1), threading.Event()

def use():
    for piece in [C.malloc({BYTES}) for _ in range({PIECES})]:
        C.free(piece)
    done.wait()
    ended.wait()

before = C.mallinfo2()
for _ in range({THREADS}):
    threading.Thread(target=use, daemon=True).start()
done.wait()
after = C.mallinfo2()
print(after.uordblks - before.uordblks)
ended.set()
"""

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has settings of its own")


def held(environment: dict[str, str]) -> int:
    """What threads hold that have freed all they took: bytes."""
    untuned = {name: value for name, value in os.environ.items() if name not in TUNED}
    command = [sys.executable, "-c", PROGRAM]
    return int(subprocess.run(command, env={**untuned, **environment}, check=True, capture_output=True).stdout)


@glibc
def test_a_workers_threads_keep_nothing_that_they_freed() -> None:
    assert held({}) - held(TUNED) >= THREADS * PIECES * BYTES
