"""Opening of text files from elsewhere: UTF-8, with or without a byte order mark; other encodings are named."""

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from cotrail.common.input_limits import MAX_FILE_BYTES, numbered_lines, read_whole
from cotrail.errors import InputError

_WIDE = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # before UTF-16's, with which it begins
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
"""Byte order marks of other encodings, which Windows' programs write at the beginning of a file."""


class Peekable(Protocol):
    """A buffered binary file, which may be a pipe or be decompressed as it is read."""

    def peek(self, size: int, /) -> bytes:
        """The next bytes, which stay to be read."""

    def read(self, size: int, /) -> bytes:
        """Read at most so many bytes."""


@contextmanager
def opened(path: Path, error: type[InputError], what: str = "") -> Iterator[BinaryIO]:
    """Open the file for reading, behind a byte order mark if it has one; an error says why that failed.

    what: the name of the file in errors, e.g. `the script`.
    """
    name = f"{what} {path}".strip()
    try:
        with path.open("rb") as file:
            skip_mark(file, name, error)
            yield file
    except OSError as cause:
        raise error(f"{name} can't be read ({cause.strerror}); check the path") from cause


def lines(path: Path, error: type[InputError], total: int | None = MAX_FILE_BYTES) -> Iterator[tuple[str, bytes]]:
    """Yield the non-blank lines of a file with their places, e.g. `dev.jsonl, line 3`.

    total: maximum bytes of all lines together; None where the caller doesn't keep them.
    """
    with opened(path, error) as file:
        for number, line in numbered_lines(file, str(path), error, total):
            if line.strip():
                yield f"{path}, line {number}", line


def line_text(raw: bytes, place: str, error: type[InputError]) -> str:
    """The text of a line without its end; the error where it isn't UTF-8, or holds a NUL character."""
    try:
        text = raw.decode().rstrip("\r\n")
    except UnicodeDecodeError as cause:
        raise error(f"{place}: this isn't UTF-8 ({cause}); save the file as UTF-8") from cause
    if "\0" in text:
        raise error(f"{place}: the text holds a NUL character, which can't be stored; take it out")
    return text


def read_text(path: Path, error: type[InputError], most: int) -> str:
    """Read a whole text of at most `most` bytes, its lines ended by line feeds; an error names a line that isn't UTF-8.

    NUL characters are refused: PostgreSQL can't store them.
    """
    with opened(path, error) as file:
        content = read_whole(file, str(path), error, most)
    try:
        text = content.decode()
    except UnicodeDecodeError as cause:
        line = content.count(b"\n", 0, cause.start) + 1
        raise error(f"{path}, line {line}: not UTF-8 text; save the file as UTF-8") from cause
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise error(f"{path}, line {line}: a NUL byte, which no text has; check that it is the right file")
    return text.replace("\r\n", "\n")


def skip_mark(file: Peekable, name: str, error: type[InputError]) -> None:
    """Read past the byte order mark at the beginning of a file; an error where the text isn't in UTF-8."""
    start = file.peek(4)[:4]
    if encoding := _other_encoding(start):
        raise error(f"{name} is text in {encoding}; convert it to UTF-8: iconv -f {encoding} -t UTF-8 OLD > NEW")
    if start.startswith(codecs.BOM_UTF8):
        file.read(len(codecs.BOM_UTF8))


def _other_encoding(start: bytes) -> str | None:
    if (marked := next((name for mark, name in _WIDE if start.startswith(mark)), None)) is not None:
        return marked
    match [byte == 0 for byte in start]:  # Latin letters without a mark, whose other bytes are zero
        case [False, True, False, True]:
            return "UTF-16LE"
        case [True, False, True, False]:
            return "UTF-16BE"
    return None
