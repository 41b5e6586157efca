"""Questions that are published as a table (tab- or comma-separated), and go around as JSON with the same names too."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from cotrail.common.json_files import decode, entries, is_list, is_object, lines
from cotrail.common.refusals import refusal
from cotrail.common.text_files import rows
from cotrail.errors import DatasetError

T = TypeVar("T")


def records(path: Path, kind: type[T]) -> Iterator[tuple[str, bytes, T]]:
    """Yield the rows of a table, or the elements or lines of JSON, with their places and their bytes.

    A cell of a table is a string; columns that the type hasn't are read past.
    """
    if is_list(path, DatasetError):
        for place, raw in entries(path, DatasetError):
            yield place, bytes(raw), decode(raw, kind, place, DatasetError)
    elif is_object(path, DatasetError):
        for place, line in lines(path, DatasetError):
            yield place, line, decode(line, kind, place, DatasetError)
    else:
        for place, line, cells in rows(path, (), DatasetError):
            try:
                yield place, line, msgspec.convert(cells, kind)
            except msgspec.ValidationError as cause:
                raise DatasetError(
                    f"{place}: {refusal(cause, kind, cells)}; correct the line, or the names of the columns"
                ) from cause


def written(path: Path, raws: Sequence[bytes]) -> bytes:
    """A file of these records, below the header of that file where it is a table."""
    header = [] if is_object(path, DatasetError) else [next(line.strip() for _, line in lines(path, DatasetError))]
    return b"".join(line + b"\n" for line in (*header, *raws))
