"""Processes of cotrail: the cores that they may use, their garbage collector, and locks on files between them."""

import atexit
import ctypes
import fcntl
import gc
import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cotrail.errors import InputError

# Where the texts of systems are kept that runs brought in files; who knows the home says so as the process starts.

FOLDERS: list[Path] = []
"""The folders in which they are looked for by their digests."""


@contextmanager
def ending_within(seconds: float, error: type[BaseException]) -> Iterator[None]:
    """Raises this error within the block, in its thread, where its Python code takes longer."""
    thread, lock, over = threading.get_ident(), threading.Lock(), False

    def end() -> None:
        with lock:
            if not over:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            over = True
        timer.cancel()


# How many cores this process may use: fewer than the host has, in a container with a quota.
#
# Libraries count the host's. With more threads than cores, each waits for all others again and again.

CGROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


def host_cores() -> int:
    """Return how many cores the host has."""
    return os.cpu_count() or 1


def usable_cores() -> int:
    """Return how many of them this process may use, by its affinity and the quotas of its control groups; one at least.

    A quota of two and a half cores counts as three.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else host_cores()
    return max(1, min([host_cores(), allowed, *map(math.ceil, _quotas())]))


def _quotas() -> Iterator[float]:
    """Cores by the quota of each group that this process is in, from its own up to the root, in either version."""
    for folder in _groups():
        try:
            if (version_2 := folder / "cpu.max").exists():
                quota, period = version_2.read_text().split()
            else:
                quota, period = ((folder / f"cpu.cfs_{each}_us").read_text() for each in ("quota", "period"))
            if quota != "max" and int(quota) > 0:
                yield int(quota) / int(period)
        except (OSError, ValueError):
            continue


def _groups() -> Iterator[Path]:
    try:
        lines = OWN.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = CGROUPS / controllers if controllers else CGROUPS
        own = root / path.lstrip("/")
        # In a container the path may be the host's, of which only the root is to be seen there.
        yield from dict.fromkeys(each for each in (own, *own.parents, root) if each.is_relative_to(root))


THRESHOLD = 100_000
"""The number of new objects after which it looks for reference cycles; messages, rows and pages leave hardly any."""


def collect_seldom() -> None:
    """Have it look for cycles seldom, and never among what there is by now: what is loaded stays.

    Nor does it look through everything as the process ends, which would take as long as a third of a short command.
    """
    gc.freeze()
    gc.set_threshold(THRESHOLD, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)


def lock_exclusively(descriptor: int, busy: InputError) -> None:
    """Lock an open file or folder; raises `busy` if another process holds the lock.

    The kernel releases the lock when the descriptor is closed, also where the process was killed; so no stale lock file
    can be left behind.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise busy from error


@contextmanager
def exclusive_folder(folder: Path, busy: InputError) -> Iterator[None]:
    """Hold the folder's lock; raises `busy` if another process holds it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        lock_exclusively(descriptor, busy)
        yield
    finally:
        os.close(descriptor)


# The process that started this one, which waits for its standard input as long as that lives.

STDIN = 0


def end_with_parent() -> None:
    """End this process at once when its standard input closes: the one that started it is gone, or wants it to end."""
    threading.Thread(target=_wait, name="parent", daemon=True).start()


def _wait() -> None:
    # Not by `sys.stdin`: a thread that reads from it when the interpreter ends makes that fail.
    while os.read(STDIN, 1024):
        pass
    os._exit(3)


# What C libraries read as a worker starts: how memory is handed out, and how many threads compute.

TUNED = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
"""The environment that a worker is started with: it turns glibc's per-thread caches off. Each thread would keep up to
seven freed pieces of every size; a hundred threads fill that slowly, and the process looks as if it leaked."""


def tuned() -> dict[str, str]:
    """Return the environment that a worker is started with, for where the user's own doesn't have these variables."""
    cores = usable_cores()
    return TUNED if cores >= host_cores() else {**TUNED, "OMP_NUM_THREADS": str(cores)}


def wait_passively() -> None:
    """Have threads that compute together sleep while they wait for each other, unless the environment says otherwise.

    It has to be called before PyTorch is loaded. Where others use the cores too, a thread that waits in a loop keeps
    the one that it waits for from running, and an embedding takes ten times as long.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
