"""Text files from elsewhere are opened: UTF-8, with or without a byte order mark; and files are written whole."""

import codecs
import csv
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from cotrail.errors import InputError

# Bounds on the size of input files: far above any real file, and low enough for any machine.
#
# Input files are untrusted: one of a few hundred kilobytes can be crafted so that reading it takes all memory. All
# readers go through these bounds, so that such a file is refused with the place of the offending record.

MIB = 2**20

MAX_DEPTH = 100
"""Maximum nesting of lists and objects; no dataset's format has ten levels."""

MAX_RECORD_BYTES = 16 * MIB
"""Maximum size of a line or of a list's element; Wikidata's entities and Wikipedia's pages stay far below."""

MAX_FILE_BYTES = 2048 * MIB
"""Maximum size of a file that is held in memory; the largest question file of any dataset stays well below."""

MAX_SMALL_FILE_BYTES = 64 * MIB
"""Maximum size of a file that people write: demonstrations, scripts. Those released are smaller than 1 MiB."""

MAX_PARAGRAPH_CHARACTERS = 1_000_000
"""Maximum length of a paragraph with its id and title, and of a question; prompts use a few hundred words."""

MAX_ID_BYTES = 1000
"""Maximum bytes (UTF-8) of an id: it is part of an index in the database, whose entries hold about 2,700."""


def numbered_lines(
    file: BinaryIO, name: str, error: type[InputError], total: int | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers, from 1; an error names the line that is too long.

    total: maximum bytes of all lines together, for callers that keep them; None for callers that don't.
    """
    room = total
    for number, line in enumerate(iter(partial(file.readline, MAX_RECORD_BYTES + 1), b""), start=1):
        if len(line) > MAX_RECORD_BYTES:
            raise error(f"{name}, line {number}: the line is longer than {shown_size(MAX_RECORD_BYTES)}; {CORRECT}")
        if room is not None and (room := room - len(line)) < 0:
            raise error(f"{name}, line {number}: the file is larger than {shown_size(total or 0)}; divide it")
        yield number, line


def read_whole(file: BinaryIO, name: str, error: type[InputError], most: int = MAX_FILE_BYTES) -> bytes:
    """Read the whole file into memory; an error where it has more than `most` bytes."""
    content = file.read(most + 1)  # One byte more than allowed tells "too large" without a separate look at the size.
    if len(content) > most:
        raise error(f"{name} is larger than {shown_size(most)}; divide it, or check that it is the right file")
    return content


CORRECT = "correct the record or take it out"


def too_deep(place: str) -> str:
    """The error message for excessive nesting."""
    return f"{place}: lists or objects stand more than {MAX_DEPTH} deep within one another; {CORRECT}"


def shown_size(size: int) -> str:
    """The size for people, e.g. `16 MiB`."""
    return f"{size // MIB:,} MiB" if size >= MIB else f"{size // 1024:,} KiB"


_WIDE = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # before UTF-16's, with which it begins
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
"""Byte order marks of other encodings, which Windows' programs write at the beginning of a file."""


# Files packed by gzip or zstd are read as what they hold, up to a limit: a small file may unpack to any size.

PACKED = (".gz", ".zst")
"""How the names of packed files end, in any case."""

MOST_TIMES = 200
"""What a file holds has at most so many times its own bytes; text has up to 30 times, and a bomb a thousand."""

LEAST_LIMIT = 64 * MIB
"""What any file may hold, in bytes, however small it is."""

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def unpacked_name(path: Path) -> Path:
    """The path without the ending of a packed file."""
    return path.with_suffix("") if path.suffix.lower() in PACKED else path


def unpacked(file: BinaryIO, name: str, error: type[InputError]) -> BinaryIO:
    """The file, or what it holds where it is packed, going by how it begins.

    Reading raises the error where the packed file is broken, or holds more than the limit.
    """
    start = cast(io.BufferedReader, file).peek(4)[:4]
    content: Any
    broken: type[Exception] = zlib.error
    if start.startswith(_GZIP):
        content = gzip.GzipFile(fileobj=file)
    elif start == _ZSTD:
        # Not of this module's, since clients read files too, and need as few packages as can be.
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
        content, broken = zstd.ZstdFile(file), zstd.ZstdError
    else:
        return file
    return cast(BinaryIO, io.BufferedReader(_Limited(content, broken, _limit(file), name, error)))


def _limit(file: BinaryIO) -> int:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    return max(LEAST_LIMIT, MOST_TIMES * size)


class _Limited(io.RawIOBase):
    """What a packed file holds; broken: raised where it is; most: the limit in bytes."""

    def __init__(self, content: Any, broken: type[Exception], most: int, name: str, error: type[InputError]) -> None:
        self._content = content
        self._broken = broken
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
        return int(self._unpack(lambda: self._content.seek(offset, whence)))

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        content: bytes = self._unpack(lambda: self._content.read(len(view)))
        view[: len(content)] = content
        return len(content)

    def _unpack(self, step: Any) -> Any:
        try:
            done = step()
        except (OSError, EOFError, self._broken) as cause:
            reason = str(cause) or type(cause).__name__
            raise self._error(f"{self._name}: the packed file is broken ({reason}); get it again") from cause
        if self._content.tell() > self._most:
            raise self._error(
                f"{self._name} holds more than {self._most // MIB:,} MiB, the limit for its size, as crafted files "
                "do; if it is right, unpack it first"
            )
        return done


class Peekable(Protocol):
    """A buffered binary file, which may be a pipe or be decompressed as it is read."""

    def peek(self, size: int, /) -> bytes:
        """The next bytes, which stay to be read."""

    def read(self, size: int, /) -> bytes:
        """Read at most so many bytes."""


@contextmanager
def opened(path: Path, error: type[InputError], what: str = "", *, unpack: bool = True) -> Iterator[BinaryIO]:
    """Open the file for reading, behind a byte order mark if it has one; an error says why that failed.

    what: the name of the file in errors, e.g. `the script`. unpack: whether what is packed by gzip or zstd is unpacked
        as it is read.
    """
    name = f"{what} {path}".strip()
    try:
        with path.open("rb") as stored:
            file = unpacked(stored, name, error) if unpack else cast(BinaryIO, stored)
            skip_mark(cast(Peekable, file), name, error)
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
        byte = cause.object[cause.start]
        raise error(
            f"{place}: this isn't text in UTF-8 (it has the byte 0x{byte:02x}); save the file as UTF-8"
        ) from cause
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


# Reading of tables whose cells are separated by tabs, or by commas, below a header; errors name the line.

LONGEST_HEADER = 10_000
"""Maximum bytes of a first line that are looked at to tell what a file is."""


def header(line: bytes) -> list[str]:
    """The names of a table's columns, by its first line; none where that can't be read."""
    text = line.decode(errors="replace").rstrip("\r\n").replace("\0", "")
    try:
        return [name.strip() for name in next(csv.reader([text], delimiter=separator(line) or ","), [])]
    except csv.Error:
        return []


def separator(header: bytes) -> str:
    """What separates the cells of a table with this first line; empty where it has one column."""
    return next((mark for mark in "\t,;" if mark.encode() in header), "")


def rows(
    path: Path, required: tuple[tuple[str, ...], ...], error: type[InputError], total: int | None = MAX_FILE_BYTES
) -> Iterator[tuple[str, bytes, dict[str, str]]]:
    """Yield the lines after the header with their places, their bytes and their cells by the names of their columns.

    required: the columns that the header must name, each under one of several names. A cell may be quoted as in CSV;
    none has line breaks. total: as in `lines`.
    """
    names: list[str] | None = None
    delimiter = ""
    for place, raw in lines(path, error, total):
        delimiter = delimiter or separator(raw) or ","
        cells = _cells(raw, delimiter, place, error)
        if names is None:
            names = _header(cells, required, place, error)
        elif len(cells) != len(names):
            raise error(f"{place}: {len(cells)} cells, and the header names {len(names)}; correct the line")
        else:
            yield place, raw, dict(zip(names, cells, strict=True))


def _header(cells: list[str], required: tuple[tuple[str, ...], ...], place: str, error: type[InputError]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if missing := [" or ".join(each) for each in required if not set(each) & set(names)]:
        columns = ", ".join(dict.fromkeys(chain.from_iterable(required)))
        lacks = f"the header names no {' and no '.join(missing)}"
        raise error(f"{place}: {lacks}; the first line has to name the columns ({columns})")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise error(f"{place}: the header names {twice!r} twice; give each column its own name")
    return names


def _cells(raw: bytes, delimiter: str, place: str, error: type[InputError]) -> list[str]:
    try:
        return next(csv.reader([line_text(raw, place, error)], delimiter=delimiter))
    except csv.Error as cause:
        raise error(f"{place}: {cause}; correct the line") from cause


# Places in words, such as `{question}`, in which values are put.

_PLACE = re.compile(r"\{[a-z_]{1,40}\}")


def places(words: str) -> tuple[str, ...]:
    """The places in these words, each once, with their brackets."""
    return tuple(dict.fromkeys(_PLACE.findall(words)))


def split(words: str) -> Iterator[str]:
    """The words cut before and behind each place: pieces that are a place alone, and those that have none."""
    end = 0
    for match in _PLACE.finditer(words):
        yield words[end : match.start()]
        yield match[0]
        end = match.end()
    yield words[end:]


def write_whole(path: Path, chunks: Iterable[bytes]) -> None:
    """Replace a file in one move, so that nobody sees a part of it, whatever ends the process; raises OSError."""
    # In the same folder, so that the move is atomic.
    draft = path.with_name(f".{path.name}.draft")
    try:
        with draft.open("wb") as file:
            file.writelines(chunks)
            file.flush()
            # Before the move: otherwise a power cut could leave an empty file under the final name.
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
