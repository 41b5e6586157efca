"""SQLite databases that are built in a draft, put in place atomically, and then only read."""

import bz2
import gzip
import hashlib
import os
import shutil
import sqlite3
import threading
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, TypeVar, cast

import msgspec
from msgspec import Struct

from cotrail.common.processes import exclusive_folder
from cotrail.common.text_files import Peekable, numbered_lines, opened, skip_mark
from cotrail.errors import InputError

# Lines of large source files, compressed or not.

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
        with opened(path, InputError, unpack=False) as file:
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
    with opened(path, InputError, unpack=False) as file:
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


Row = TypeVar("Row")

FILE_NAME = "knowledge.sqlite"
DRAFT_NAME = "draft.sqlite"

CACHE_KIB = 256 * 1024
"""Memory for the page cache of a build."""

_ABOUT = "CREATE TABLE IF NOT EXISTS about (id INTEGER PRIMARY KEY, content BLOB NOT NULL);"

MAPPED_BYTES = 1 << 31
"""Bytes of a file that are memory-mapped, and so shared by all processes that read it."""


class About(Struct, frozen=True, kw_only=True):
    """Description of a built source: the digest of its content, and how much there is of each kind."""

    digest: str
    counts: dict[str, int]


class Digest:
    """Digest of everything that goes into a source, in order."""

    def __init__(self, former: str = "") -> None:
        self._sha = hashlib.sha256(former.encode())

    def add(self, row: object) -> None:
        """Adds the next row."""
        self._sha.update(msgspec.msgpack.encode(row))

    def passing(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Adds the rows as they pass by."""
        for row in rows:
            self.add(row)
            yield row

    def __str__(self) -> str:
        """The digest of everything so far."""
        return self._sha.hexdigest()


@contextmanager
def drafted(folder: Path, source: str, *, extends: bool = False) -> Iterator[sqlite3.Connection]:
    """A database to fill, which replaces the folder's when the block ends without an error.

    Until then, and after an error or a `kill -9`, the former database stays as it is and can be read.
    source: the one whose tables it has. extends: begin with the content of the former database, if there is one.
    Raises InputError where the folder can't be written, or another process is building in it.
    """
    draft = folder / DRAFT_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        busy = InputError(f"another process is building in {folder}; wait until it is done")
        with exclusive_folder(folder, busy):
            draft.unlink(missing_ok=True)
            try:
                with closing(_begun(folder, source, extends=extends)) as connection:
                    yield connection
                    connection.commit()
                _place(draft, folder)
            finally:
                draft.unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as error:
        raise InputError(f"nothing can be built in {folder} ({error}); check the folder and its disk") from error


def finish(connection: sqlite3.Connection, digest: str, counts: Mapping[str, int]) -> About:
    """Writes the description into a draft."""
    about = About(digest=digest, counts=dict(counts))
    connection.execute("INSERT OR REPLACE INTO about VALUES (1, ?)", (msgspec.json.encode(about),))
    return about


def about(connection: sqlite3.Connection) -> About | None:
    """The description of a database; None where it is still empty."""
    row = connection.execute("SELECT content FROM about").fetchone()
    return msgspec.json.decode(row[0], type=About) if row else None


class Database:
    """Reads a folder's database as it was when it was opened, even while it is rebuilt. Safe for many threads."""

    def __init__(self, folder: Path) -> None:
        file = folder / FILE_NAME
        try:
            # Files are never changed in place, so SQLite needn't look for changes or take locks.
            self._connection = sqlite3.connect(
                f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
            )
            # Python warns of connections that are collected without having been closed.
            weakref.finalize(self, self._connection.close)
            self._connection.execute(f"PRAGMA mmap_size = {MAPPED_BYTES}")
            record = about(self._connection)
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            raise unusable(folder, error) from error
        if record is None:
            raise unusable(folder, "it is empty")
        self.about = record
        self._reading = threading.Lock()

    def rows(self, query: str, *parameters: object) -> list[Any]:
        """The rows that a query finds. Parameters that are lists are passed as JSON, for `json_each`."""
        bound = [msgspec.json.encode(value).decode() if isinstance(value, list) else value for value in parameters]
        # One connection is shared by all threads, and SQLite's Python module doesn't allow concurrent use.
        with self._reading:
            return self._connection.execute(query, bound).fetchall()


class BuiltSource:
    """What a knowledge source with a database has in common with others; see `Knowledge`.

    name: the source's; version: that of its look-up, another one of which finds other sentences.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1

    def __init__(self, folder: Path) -> None:
        self._database = Database(folder)

    @property
    def revision(self) -> str:
        """The version of the look-up, and the digest of the database."""
        return f"{self.name}-{self.version}:{self._database.about.digest}"


def unusable(folder: Path, reason: object) -> InputError:
    """The error for a database that is there and can't be read."""
    file = folder / FILE_NAME
    return InputError(f"{file} can't be used ({reason}); build it again with `cotrail knowledge build {folder.name}`")


def is_built(folder: Path) -> bool:
    """Return whether there is a database in this folder."""
    return (folder / FILE_NAME).is_file()


def _begun(folder: Path, source: str, *, extends: bool) -> sqlite3.Connection:
    if extends and is_built(folder):
        # A copy, as the file itself is mapped by processes that read it and may never change.
        shutil.copyfile(folder / FILE_NAME, folder / DRAFT_NAME)
    connection = sqlite3.connect(folder / DRAFT_NAME)
    # A draft that fails is deleted, so that it needs no journal.
    for pragma in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{CACHE_KIB}"):
        connection.execute(f"PRAGMA {pragma}")
    connection.executescript(_ABOUT + Path(__file__).with_name(f"{source}.sql").read_text("utf-8"))
    return connection


def _place(draft: Path, folder: Path) -> None:
    # The file first, so that the rename can't expose a partial file; then the folder, so that the rename lasts.
    for path, move in ((draft, True), (folder, False)):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if move:
            draft.replace(folder / FILE_NAME)
