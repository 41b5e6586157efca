"""Lines of large source files, compressed or not."""

import bz2
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from msgspec import Struct

from cotrail.common.input_limits import numbered_lines
from cotrail.common.text_files import Peekable, opened, skip_mark
from cotrail.errors import InputError

PROGRESS_LINES = 10_000
"""Number of lines between two reports of progress."""


class ReadingProgress(Struct, frozen=True, kw_only=True):
    """Progress of a build, in bytes of its files as stored (compressed)."""

    done: int
    total: int


ProgressCallback = Callable[[ReadingProgress], None]


def ignore_progress(_: ReadingProgress) -> None:
    """Does nothing."""


NumberedLines = Iterator[tuple[int, bytes]]
"""The lines of a file that aren't blank, each with its number."""


def opened_files(
    paths: Sequence[Path], on_progress: ProgressCallback = ignore_progress
) -> Iterator[tuple[Path, NumberedLines]]:
    """Each file with its lines, decompressed on the fly (`.gz`, `.bz2`); they have to be read before the next file.

    Raises InputError where a file can't be read or is truncated.
    """
    sizes = [_size(path) for path in paths]
    for before, path in enumerate(paths):
        with opened(path, InputError) as file:
            report = partial(_report, on_progress, file, sum(sizes[:before]), sum(sizes))
            yield path, _lines(path, _unpacked(path, file), report)
    on_progress(ReadingProgress(done=sum(sizes), total=sum(sizes)))


def lines(paths: Sequence[Path], on_progress: ProgressCallback = ignore_progress) -> Iterator[tuple[Path, int, bytes]]:
    """The lines of all files, as in `opened_files`."""
    return ((path, number, line) for path, numbered in opened_files(paths, on_progress) for number, line in numbered)


def _report(on_progress: ProgressCallback, file: BinaryIO, before: int, total: int) -> None:
    # The position in the compressed file, whose size is known.
    on_progress(ReadingProgress(done=before + file.tell(), total=total))


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


def _lines(path: Path, file: BinaryIO, report: Callable[[], None]) -> NumberedLines:
    number = 0
    try:
        skip_mark(cast(Peekable, file), str(path), InputError)
        for number, line in numbered_lines(file, str(path), InputError):
            if not line.isspace():
                yield number, line
            if number % PROGRESS_LINES == 0:
                report()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}, line {number + 1}: the file breaks off here ({error}); get it again") from error
