"""The lines of large files, packed or not."""

import bz2
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from msgspec import Struct

from cotrail.common.input_limits import numbered_lines
from cotrail.common.json_files import opened
from cotrail.errors import InputError

TOLD_EVERY = 10_000
"""After how many lines progress is told."""


class Progress(Struct, frozen=True, kw_only=True):
    """How far a build is, in bytes of its files as they lie there."""

    done: int
    total: int


Tell = Callable[[Progress], None]


def quietly(_: Progress) -> None:
    """Tells nobody."""


Lines = Iterator[tuple[int, bytes]]
"""Those of a file that aren't blank, each with its number."""


def opened_files(paths: Sequence[Path], tell: Tell = quietly) -> Iterator[tuple[Path, Lines]]:
    """Each file with its lines, to be read before the next; `.gz` and `.bz2` are unpacked as they are read.

    InputError: a file can't be read or breaks off.
    """
    sizes = [_size(path) for path in paths]
    for before, path in enumerate(paths):
        with opened(path, InputError) as file:
            told = partial(_tell, tell, file, sum(sizes[:before]), sum(sizes))
            yield path, _lines(path, _unpacked(path, file), told)
    tell(Progress(done=sum(sizes), total=sum(sizes)))


def lines(paths: Sequence[Path], tell: Tell = quietly) -> Iterator[tuple[Path, int, bytes]]:
    """The lines of all the files, as in `opened_files`."""
    return ((path, number, line) for path, found in opened_files(paths, tell) for number, line in found)


def _tell(tell: Tell, file: BinaryIO, before: int, total: int) -> None:
    tell(Progress(done=before + file.tell(), total=total))


def _size(path: Path) -> int:
    with opened(path, InputError) as file:
        return file.seek(0, 2)


def _unpacked(path: Path, file: BinaryIO) -> BinaryIO:
    match path.suffix:
        case ".gz":
            return cast(BinaryIO, gzip.open(file))
        case ".bz2":
            return cast(BinaryIO, bz2.open(file))
    return file


def _lines(path: Path, file: BinaryIO, told: Callable[[], None]) -> Lines:
    number = 0
    try:
        for number, line in numbered_lines(file, str(path), InputError):
            if not line.isspace():
                yield number, line
            if number % TOLD_EVERY == 0:
                told()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}, line {number + 1}: the file breaks off here ({error}); get it again") from error
