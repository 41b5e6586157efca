"""Tables: CSV, TSV, Parquet and Arrow; each row is read as a JSON object. The forms that files of records have.

The first line of CSV and TSV names its columns. Cells are separated by tabs where that line has any, else by commas,
else by semicolons, and may be quoted, with line breaks in them. Of Arrow, folders that `datasets` saves are read too.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

from cotrail.common.optional_packages import installed_with
from cotrail.common.text_files import (
    CORRECT,
    LONGEST_HEADER,
    MAX_RECORD_BYTES,
    line_text,
    numbered_lines,
    opened,
    separator,
    shown_size,
    unpacked_name,
)
from cotrail.errors import InputError

Form = Literal["JSON", "JSON Lines", "CSV", "TSV", "Parquet", "Arrow"]

TABLES: tuple[Form | None, ...] = ("CSV", "TSV")
"""The forms whose cells are texts."""

COLUMNAR: tuple[Form | None, ...] = ("Parquet", "Arrow")
"""The forms that need the extra `files`."""

PLACES: dict[Form | None, str] = {"JSON": "entry", "Parquet": "row", "Arrow": "row"}
"""What a record of a form is called in errors; a line where nothing is said here."""

SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".arrow")
"""How the names of such files usually end, packed ones further by `text_files.PACKED`."""

MOST_COLUMNS = 1_000
"""Maximum columns of a table."""

ROWS_AT_ONCE = 32
"""Rows of a columnar file that are held in memory at once, each up to `MAX_RECORD_BYTES`."""

FORMS = "a CSV, TSV, JSON, JSON Lines or Parquet file, or a folder that `datasets` saved"
"""The forms in words, for errors."""

_SEPARATOR = re.compile(rb"sep=([,;\t])\r?\n")

_SHARD = re.compile(r"data-[0-9]{1,6}-of-([0-9]{1,6})\.arrow")


def form_of(path: Path, error: type[InputError]) -> Form | None:
    """The form of a file, by how it begins, or else by its name; None where it holds no records."""
    if path.is_dir():
        return "Arrow"
    with opened(path, error) as file:
        start = file.read(LONGEST_HEADER)
    suffix = unpacked_name(path).suffix.lower()
    if start.startswith(b"PAR1"):
        return "Parquet"
    if start.startswith(b"ARROW1") or suffix == ".arrow":
        return "Arrow"
    text = start.lstrip()
    if not text or text.startswith(b"{"):
        return "JSON Lines"
    if text.startswith(b"["):
        return "JSON"
    first = text.partition(b"\n")[0]
    if not (separator(first) or suffix in (".csv", ".tsv")):
        return None
    return "TSV" if separator(first) == "\t" else "CSV"


def table_columns(path: Path, error: type[InputError]) -> tuple[str, ...]:
    """The names of the columns of a table, be it of texts or columnar; none where it has no first line."""
    if form_of(path, error) in COLUMNAR:
        with _columnar(_shards(path, error)[0], error) as (names, _):
            return tuple(names)
    with opened(path, error) as file:
        return next(((*_names(cells, place, error),) for place, cells in _cells(file, str(path), error)), ())


def table_rows(path: Path, error: type[InputError], total: int | None) -> Iterator[tuple[str, bytes]]:
    """Yield the rows of a table, be it of texts or columnar, as `cotrail.common.json_files.records` does."""
    return _rows(path, error, total) if form_of(path, error) in COLUMNAR else _table(path, error, total)


def _table(path: Path, error: type[InputError], total: int | None) -> Iterator[tuple[str, bytes]]:
    names: list[str] = []
    with opened(path, error) as file:
        for place, cells in _cells(file, str(path), error, total):
            if not names:
                names = _names(cells, place, error)
            elif len(cells) != len(names):
                raise error(
                    f"{place}: {len(cells)} cells, and the header names {len(names)} ({', '.join(names)[:80]}); "
                    "correct the line, and quote cells that hold the separator or a line break"
                )
            else:
                yield place, msgspec.json.encode({name: cell for name, cell in zip(names, cells, strict=True) if name})


def _names(cells: Sequence[str], place: str, error: type[InputError]) -> list[str]:
    """The names of the columns; those without a name are empty."""
    names = [cell.strip() for cell in cells]
    if len(names) > MOST_COLUMNS:
        raise error(f"{place}: {len(names):,} columns, and {MOST_COLUMNS:,} is the most; take out those not needed")
    if twice := next((name for name in names if name and names.count(name) > 1), None):
        raise error(f"{place}: the header names {twice!r} twice; give each column its own name")
    return names


def _cells(
    file: BinaryIO, name: str, error: type[InputError], total: int | None = None
) -> Iterator[tuple[str, list[str]]]:
    csv.field_size_limit(MAX_RECORD_BYTES)
    begin = file.tell()
    first = file.readline(LONGEST_HEADER)
    if names_separator := _SEPARATOR.fullmatch(first):  # which Excel writes and reads as the first line
        begin += len(first)
    delimiter = names_separator[1].decode() if names_separator else separator(first) or ","
    file.seek(begin)
    source = _Lines(file, name, error, total)
    rows = csv.reader(source, delimiter=delimiter, strict=True)
    while True:
        place = source.begin()
        try:
            cells = next(rows, None)
        except csv.Error as cause:
            raise error(f"{place}: {_csv_problem(str(cause))}") from cause
        if cells is None:
            return
        if any(cells):
            yield place, cells


def _csv_problem(said: str) -> str:
    if "new-line" in said:
        return "its lines end in carriage returns alone; save it with other line ends, or `tr '\\r' '\\n'`"
    return f"{said}; correct the line: quotation marks in a quoted cell are doubled"


class _Lines(Iterator[str]):
    """The lines of a table as texts; those of one row, of which quoted cells may have several, are limited together."""

    def __init__(self, file: BinaryIO, name: str, error: type[InputError], total: int | None) -> None:
        self._lines = numbered_lines(file, name, error, total)
        self._name = name
        self._error = error
        self._number = self._size = 0

    def begin(self) -> str:
        self._size = 0
        return f"{self._name}, line {self._number + 1}"

    def __next__(self) -> str:
        self._number, raw = next(self._lines)
        place = f"{self._name}, line {self._number}"
        self._size += len(raw)
        if self._size > MAX_RECORD_BYTES:
            most = shown_size(MAX_RECORD_BYTES)
            raise self._error(f"{place}: a row is larger than {most}; close the quotation mark that is open before")
        return line_text(raw, place, self._error) + "\n"


def _rows(path: Path, error: type[InputError], total: int | None) -> Iterator[tuple[str, bytes]]:
    number = size = 0
    for part in _shards(path, error):
        with _columnar(part, error) as (_, rows):
            for row in rows:
                number += 1
                raw = msgspec.json.encode(row, enc_hook=str)
                size += len(raw)
                if len(raw) > MAX_RECORD_BYTES:
                    raise error(f"{path}, row {number}: it is larger than {shown_size(MAX_RECORD_BYTES)}; {CORRECT}")
                if total is not None and size > total:
                    raise error(f"{path}, row {number}: the rows are larger than {shown_size(total)}; divide the file")
                yield f"{path}, row {number}", raw


@contextmanager
def _columnar(path: Path, error: type[InputError]) -> Iterator[tuple[Sequence[str], Iterator[Any]]]:
    with installed_with("files"):
        from pyarrow import ArrowException, ipc
        from pyarrow.parquet import ParquetFile

    with opened(path, error) as file:
        start = file.read(6)
        file.seek(0)
        try:
            if start.startswith(b"PAR1"):
                table = ParquetFile(file)
                schema, batches = table.schema_arrow, table.iter_batches(ROWS_AT_ONCE, use_threads=False)
            elif start == b"ARROW1":
                table = ipc.open_file(file)
                schema, batches = table.schema, map(table.get_batch, range(table.num_record_batches))
            else:
                batches = ipc.open_stream(file)
                schema = batches.schema
            rows = chain.from_iterable(map(_taken, batches))
            has_bytes = any("binary" in str(kind) for kind in schema.types)
            yield (
                _names(schema.names, str(path), error),
                (({name: _text_of(value) for name, value in row.items()} for row in rows) if has_bytes else rows),
            )
        except (ArrowException, OSError, EOFError, UnicodeDecodeError, OverflowError, MemoryError) as cause:
            reason = next(iter(str(cause).splitlines()), type(cause).__name__)
            raise error(f"{path} is damaged ({reason}); write it again, or get it again") from cause


def _taken(batch: Any) -> Iterator[Any]:
    batch.validate(full=True)  # reading one whose offsets are wrong would end the process
    starts = range(0, batch.num_rows, ROWS_AT_ONCE)
    return chain.from_iterable(batch.slice(start, ROWS_AT_ONCE).to_pylist() for start in starts)


def _text_of(value: Any) -> Any:
    """The value of a cell, in which texts may be stored as bytes; others, as those of pictures, stay what they are."""
    if isinstance(value, list):
        return [_text_of(each) for each in value]
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def is_saved(folder: Path) -> bool:
    """Return whether a folder is one that `datasets` saved."""
    return any(folder.glob("data-*-of-*.arrow")) or (folder / "dataset_dict.json").exists()


def _shards(path: Path, error: type[InputError]) -> list[Path]:
    """The files of a folder that `datasets` saved, in order; of a folder of splits, those of the only one."""
    if not path.is_dir():
        return [path]
    splits = sorted(each.parent.name for each in path.glob("*/dataset_info.json"))
    if len(splits) > 1:
        raise error(f"{path} has the splits {', '.join(splits)}; name one of them, as {path / splits[0]}")
    if splits and not (path / "dataset_info.json").exists():
        return _shards(path / splits[0], error)
    found = sorted(each for each in path.iterdir() if _SHARD.fullmatch(each.name))
    wanted = {int(match[1]) for each in found if (match := _SHARD.fullmatch(each.name))}
    if not found:
        raise error(f"{path} is a folder without data-*.arrow, as `datasets` saves them; give {FORMS}")
    if wanted != {len(found)}:
        raise error(f"{path} has {len(found)} files data-*.arrow, and their names say {max(wanted)}; copy all of them")
    return found
