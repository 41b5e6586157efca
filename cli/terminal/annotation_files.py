"""Files of sentences to be judged, and of causes to be labelled, which people fill in."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from cotrail.common.input_limits import MAX_FILE_BYTES, numbered_lines
from cotrail.common.json_files import problem_of
from cotrail.common.text_files import opened
from cotrail.errors import InputError

RowT = TypeVar("RowT", bound=Struct)


def write_rows(path: Path, rows: Sequence[Struct]) -> None:
    """Writes an annotation file; InputError where it can't be written or is there already, as it may hold marks."""
    try:
        # Exclusive creation, as a file that is there may hold hours of a person's work.
        with path.open("xb") as file:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in rows)
    except FileExistsError as error:
        raise InputError(f"{path} is there already and may hold marks; import it, or name another file") from error
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); name another file") from error


def read_rows(path: Path, form: type[RowT]) -> dict[str, RowT]:
    """The rows of an annotation file by their place in it; InputError says where one has another form."""
    rows: dict[str, RowT] = {}
    with opened(path, InputError) as file:
        for number, line in numbered_lines(file, str(path), InputError, MAX_FILE_BYTES):
            if line.strip():
                rows[f"{path}:{number}"] = _row(line, f"{path}:{number}", form)
    return rows


def _row(raw: bytes, place: str, form: type[RowT]) -> RowT:
    try:
        return msgspec.json.decode(raw, type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{place}: {problem_of(error, raw, form)}; each line is an object as the exported file has it"
        ) from error
