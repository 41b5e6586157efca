"""Streamed reading of large JSON files: each element comes with its place, each error names one."""

from collections.abc import Iterator
from typing import Any, BinaryIO

import ijson
import msgspec

from cotrail.common import json_files
from cotrail.common.text_files import CORRECT, numbered_lines
from cotrail.errors import CorpusError


def lines(file: BinaryIO, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the non-blank lines of a file with their places, e.g. `train.jsonl, line 3`."""
    numbered = numbered_lines(file, name, CorpusError)
    return ((f"{name}, line {number}", line) for number, line in numbered if line.strip())


def items(file: BinaryIO, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the elements of a JSON list as JSON with their places, e.g. `train.json, entry 3`."""
    return _pieces(json_files.elements(file), name, "entry")


def members(file: BinaryIO, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the members of a JSON object as pairs of key and value, with places, e.g. `articles.json, member 3`."""
    return _pieces(json_files.members(file), name, "member")


def _pieces(pieces: Iterator[Any], name: str, noun: str) -> Iterator[tuple[str, bytes]]:
    number = 0
    try:
        for number, piece in enumerate(pieces, start=1):
            yield f"{name}, {noun} {number}", msgspec.json.encode(piece)
    except json_files.OversizeError as error:
        raise CorpusError(f"{name}, {noun} {number + 1}: {error}; {CORRECT}") from error
    except (ijson.JSONError, UnicodeDecodeError) as error:
        reason = str(error).removeprefix("b'").splitlines()[0].split("\\n")[0]
        raise CorpusError(
            f"{name}, {noun} {number + 1}: this isn't valid JSON in UTF-8 ({reason}); get the file again"
        ) from error
