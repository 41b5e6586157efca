"""Files packed by gzip or zstd, read as what they hold, up to a limit: a small file may unpack to any size."""

import gzip
import io
import sys
import zlib
from pathlib import Path
from typing import Any, BinaryIO, cast

from cotrail.errors import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SUFFIXES = (".gz", ".zst")
"""How the names of packed files end, in any case."""

MOST_TIMES = 200
"""What a file holds has at most so many times its own bytes; text has up to 30 times, and a bomb a thousand."""

LEAST_LIMIT = 64 * 2**20
"""What any file may hold, in bytes, however small it is."""

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def unpacked_name(path: Path) -> Path:
    """The path without the ending of a packed file."""
    return path.with_suffix("") if path.suffix.lower() in SUFFIXES else path


def unpacked(file: BinaryIO, name: str, error: type[InputError]) -> BinaryIO:
    """The file, or what it holds where it is packed, going by how it begins.

    Reading raises the error where the packed file is broken, or holds more than the limit.
    """
    start = cast(io.BufferedReader, file).peek(4)[:4]
    if start.startswith(_GZIP):
        return cast(BinaryIO, io.BufferedReader(_Limited(gzip.GzipFile(fileobj=file), _limit(file), name, error)))
    if start == _ZSTD:
        return cast(BinaryIO, io.BufferedReader(_Limited(zstd.ZstdFile(file), _limit(file), name, error)))
    return file


def _limit(file: BinaryIO) -> int:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    return max(LEAST_LIMIT, MOST_TIMES * size)


class _Limited(io.RawIOBase):
    """What a packed file holds; most: the limit in bytes."""

    def __init__(self, content: Any, most: int, name: str, error: type[InputError]) -> None:
        self._content = content
        self._most = most
        self._name = name
        self._error = error

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is: to go back, it is unpacked from its beginning."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See `io.RawIOBase`."""
        return int(self._unpack(lambda: self._content.seek(offset, whence)))

    def readinto(self, buffer: Any) -> int:
        """See `io.RawIOBase`."""
        view = memoryview(buffer).cast("B")
        content: bytes = self._unpack(lambda: self._content.read(len(view)))
        view[: len(content)] = content
        return len(content)

    def _unpack(self, step: Any) -> Any:
        try:
            done = step()
        except (OSError, EOFError, zlib.error, zstd.ZstdError) as cause:
            reason = str(cause) or type(cause).__name__
            raise self._error(f"{self._name}: the packed file is broken ({reason}); get it again") from cause
        if self._content.tell() > self._most:
            raise self._error(
                f"{self._name} holds more than {self._most // 2**20:,} MiB, the limit for its size, as crafted files "
                "do; if it is right, unpack it first"
            )
        return done
