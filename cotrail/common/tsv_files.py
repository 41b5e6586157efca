"""Reading of tab-separated files with a header, whose errors name the line."""

import csv
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from cotrail.common.input_limits import MAX_FILE_BYTES
from cotrail.common.json_files import lines
from cotrail.common.text_files import opened
from cotrail.errors import InputError


def is_tsv(path: Path, error: type[InputError]) -> bool:
    """Return whether the file is tab-separated, going by its first line."""
    with opened(path, error) as file:
        first = file.readline(10_000)
    return b"\t" in first and not first.lstrip().startswith((b"{", b"["))


def rows(
    path: Path, required: tuple[tuple[str, ...], ...], error: type[InputError], total: int | None = MAX_FILE_BYTES
) -> Iterator[tuple[str, bytes, dict[str, str]]]:
    """Yield the lines after the header with their places, their bytes and their cells by the names of their columns.

    required: the columns that the header must name, each under one of several names. A cell may be quoted as in CSV;
    none has line breaks. total: as in `lines`.
    """
    names: list[str] | None = None
    for place, raw in lines(path, error, total):
        cells = _cells(raw, place, error)
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


def _cells(raw: bytes, place: str, error: type[InputError]) -> list[str]:
    try:
        text = raw.decode().rstrip("\r\n")
    except UnicodeDecodeError as cause:
        raise error(f"{place}: this isn't UTF-8 ({cause}); save the file as UTF-8") from cause
    if "\0" in text:
        raise error(f"{place}: the text holds a NUL character, which can't be stored; take it out")
    try:
        return next(csv.reader([text], dialect="excel-tab"))
    except csv.Error as cause:
        raise error(f"{place}: {cause}; correct the line") from cause
