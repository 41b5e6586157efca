"""`cotrail logs`: what a process of the local stack wrote."""

import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from cotrail.cli.arguments import completing
from cotrail.common.nearest import unknown
from cotrail.common.printable_text import without_commands
from cotrail.configuration.settings import settings
from cotrail.errors import InputError, UnknownNameError

POLL_SECONDS = 0.2

LINE_COUNT = 40
"""The number of last lines that are printed by default."""


def _names() -> tuple[str, ...]:
    from cotrail.workers.stack.status import NAMES

    return NAMES


def logs(
    process: Annotated[
        str,
        typer.Argument(
            metavar="PROCESS",
            help="generation, retrieval, evidence, maintenance, postgres, redis, flower, supervisor-1 or supervisor-2.",
            show_default=False,
            autocompletion=completing(_names),
        ),
    ],
    *,
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", min=0, help="Only this many of the last lines.")
    ] = LINE_COUNT,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines, until Ctrl-C.")] = False,
) -> None:
    """Print the end of the log of a process of the local stack.

    Example: `cotrail logs generation --follow`
    """
    path = _log_of(process)
    if not path.exists():
        raise InputError(f"{process} has no log yet: `cotrail up` starts it, unless the settings name a server instead")
    with path.open("rb") as file:
        for line in deque(file, lines):
            _print(line)
        position = file.tell()
    if follow:
        for line in appended(path, position):
            _print(line)


def _log_of(process: str) -> Path:
    from cotrail.workers.logs import log_path

    if process not in _names():
        raise UnknownNameError(unknown("process", process, _names()))
    return log_path(settings().home, process)


def appended(path: Path, position: int) -> Iterator[bytes]:
    """Yield the lines that are written behind a position of a log, also after it was rotated; never ends."""
    while True:
        with path.open("rb") as file:
            file.seek(position)
            yield from _until_rotated(path, file)
        position = 0


def _until_rotated(path: Path, file: BinaryIO) -> Iterator[bytes]:
    line = b""
    while True:
        line += file.readline()
        if line.endswith(b"\n"):
            yield line
            line = b""
        elif _is_rotated(path, file):
            return
        else:
            time.sleep(POLL_SECONDS)


def _is_rotated(path: Path, file: BinaryIO) -> bool:
    # Between the move of a log and the beginning of the next one, there is none.
    if not path.exists():
        return False
    current, opened_file = path.stat(), os.fstat(file.fileno())
    return current.st_ino != opened_file.st_ino or current.st_size < file.tell()


def _print(line: bytes) -> None:
    typer.echo(without_commands(line.decode(errors="replace").rstrip("\n")))
