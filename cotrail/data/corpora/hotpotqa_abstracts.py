"""HotpotQA's corpus: the dump of Wikipedia's abstracts, and bounded reading of a stream of JSON lines."""

import bz2
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import ijson
import msgspec
from msgspec import Struct

from cotrail.common import json_files
from cotrail.common.json_files import decode
from cotrail.common.text_files import CORRECT, numbered_lines
from cotrail.core.questions import joined
from cotrail.errors import CorpusError


class _Page(Struct, frozen=True):
    """A line as published: sentences; in the dump of complete pages, a list of sentences for each paragraph."""

    title: str
    text: tuple[str | tuple[str, ...], ...]


def files(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Expand the named folders to their files, sorted within each folder."""
    if packed := [path for path in paths if path.name.endswith(".tar.bz2")]:
        raise CorpusError(f"{packed[0]} is still packed; unpack it (`tar -xf`) and name the folder")
    return tuple(file for path in paths for file in (_in_folder(path) if path.is_dir() else (path,)))


def _in_folder(folder: Path) -> list[Path]:
    archives = sorted(folder.rglob("wiki_*.bz2"))
    if not archives:
        raise CorpusError(
            f"{folder} holds no wiki_*.bz2; name the folder that HotpotQA's archive of abstracts was unpacked to"
        )
    return archives


def records(file: BinaryIO, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the non-blank lines of a packed file with their places."""
    number = 0
    try:
        with bz2.open(file) as unpacked:
            for number, line in numbered_lines(cast(BinaryIO, unpacked), name, CorpusError):
                if line.strip():
                    yield f"{name}, line {number}", line
    except EOFError as error:
        raise CorpusError(f"{name}, line {number + 1}: the file ends too early; get it again") from error
    except OSError as error:
        raise CorpusError(f"{name}, line {number + 1}: this isn't bz2 ({error}); get the file again") from error


def paragraphs(place: str, raw: bytes, _seed: int) -> Iterator[tuple[str, str]]:
    """The paragraph of a line, or the paragraphs of a complete page."""
    page = decode(raw, _Page, place, CorpusError)
    if not all(isinstance(part, str) for part in page.text):
        texts = (part.strip() if isinstance(part, str) else joined(part) for part in page.text)
        yield from ((page.title, text) for text in texts if text)
    else:
        yield page.title, joined([part for part in page.text if isinstance(part, str)])


# Streamed reading of large JSON files: each element comes with its place, each error names one.


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
