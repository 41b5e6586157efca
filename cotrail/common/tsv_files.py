"""Reading of tables whose cells are separated by tabs, or by commas, below a header; errors name the line."""

import csv
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from cotrail.common.input_limits import MAX_FILE_BYTES
from cotrail.common.text_files import line_text, lines, opened
from cotrail.errors import InputError

LONGEST_HEADER = 10_000
"""Maximum bytes of a first line that are looked at to tell what a file is."""


def is_tsv(path: Path, error: type[InputError]) -> bool:
    """Return whether the file is tab-separated, going by its first line."""
    with opened(path, error) as file:
        first = file.readline(LONGEST_HEADER)
    return b"\t" in first and not first.lstrip().startswith((b"{", b"["))


def columns(header: bytes) -> list[str]:
    """The names of the columns, where the first line is a header; none where it has neither tabs nor commas."""
    text = header.decode(errors="replace").rstrip("\r\n").replace("\0", "")
    try:
        names = next(csv.reader([text], delimiter=_delimiter(header)), [])
    except csv.Error:
        return []
    return [name.strip() for name in names] if len(names) > 1 else []


def _delimiter(header: bytes) -> str:
    return "\t" if b"\t" in header else ","


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
        delimiter = delimiter or _delimiter(raw)
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
