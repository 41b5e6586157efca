"""A disk for the store that can be filled in a moment: a file system in memory whose size is changed."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cotrail.configuration.settings import Settings
from cotrail.workers.stack.postgres import find_place

SIZE = "4g"
"""Larger than any run; only written data takes memory."""

SPARE = 16 * 1024
"""Bytes left free when the disk is filled, for what is being written at that moment."""


class Disk:
    """The folder that it is mounted on; None if this account may not mount, in which case it is never full."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def fill(self) -> None:
        """Leaves no room. PostgreSQL may continue to write meanwhile, so the size is tried again until it fits."""
        spare = SPARE
        while self.path is not None:
            try:
                self._resize(str(shutil.disk_usage(self.path).used + spare))
                return
            except subprocess.CalledProcessError:
                spare *= 2

    def empty(self) -> None:
        """Makes room again."""
        if self.path is not None:
            self._resize(SIZE)

    def _resize(self, size: str) -> None:
        _run("mount", "-o", f"remount,size={size}", str(self.path))


@contextmanager
def own_disk(settings: Settings) -> Iterator[Disk]:
    """Mounts a disk at the data folder of the home's PostgreSQL, which must not have been started yet."""
    place = find_place(settings.home, settings.socket_path)
    folder = place.data.parent
    if place.user is None or re.fullmatch("[0-9a-f]+", folder.name) is None:
        yield Disk(None)
        return
    folder.mkdir(parents=True)
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "tmpfs", str(folder))
    except subprocess.CalledProcessError:
        yield Disk(None)
        return
    try:
        yield Disk(folder)
    finally:
        _run("umount", "--lazy", str(folder))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
