"""Bounds on the size of input files: far above any real file, and low enough for any machine.

Input files are untrusted: one of a few hundred kilobytes can be crafted so that reading it takes all memory. All
readers go through these bounds, so that such a file is refused with the place of the offending record.
"""

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from cotrail.errors import InputError

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
