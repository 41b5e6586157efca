"""How much a file may hold at once: far more than any real one does, and little enough for any machine.

Files come from elsewhere, and one of a few hundred kilobytes can be made so that reading it takes all memory. Whatever
reads one asks here, so that it is refused with its place instead.
"""

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from cotrail.errors import InputError

MIB = 2**20

MAX_DEPTH = 100
"""How deep lists and objects may stand within one another; no dataset's form has ten such levels."""

MAX_RECORD_BYTES = 16 * MIB
"""A line, or an element of a list: an entity of Wikidata and a page of Wikipedia stay far below it."""

MAX_FILE_BYTES = 2048 * MIB
"""A file whose content is held in memory; every dataset's largest file of questions stays well below it."""

MAX_SMALL_FILE_BYTES = 64 * MIB
"""A file that people write or read: demonstrations, scripts; those released have less than one."""

MAX_PARAGRAPH_CHARACTERS = 1_000_000
"""A paragraph of a corpus, with its id and title; prompts take the first few hundred words of one."""


def numbered_lines(
    file: BinaryIO, name: str, error: type[InputError], total: int | None = None
) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, each with its number.

    total: how many bytes they may have together; None where they aren't kept. An error names the line that is too long.
    """
    room = total
    for number, line in enumerate(iter(partial(file.readline, MAX_RECORD_BYTES + 1), b""), start=1):
        if len(line) > MAX_RECORD_BYTES:
            raise error(f"{name}, line {number}: the line is longer than {shown_size(MAX_RECORD_BYTES)}; {CORRECT}")
        if room is not None and (room := room - len(line)) < 0:
            raise error(f"{name}, line {number}: the file is larger than {shown_size(total or 0)}; divide it")
        yield number, line


def read_whole(file: BinaryIO, name: str, error: type[InputError], most: int = MAX_FILE_BYTES) -> bytes:
    """All that the file holds, which is held in memory."""
    content = file.read(most + 1)
    if len(content) > most:
        raise error(f"{name} is larger than {shown_size(most)}; divide it, or check that it is the right file")
    return content


CORRECT = "correct the record or take it out"


def too_deep(place: str) -> str:
    """What is wrong with nested brackets without end."""
    return f"{place}: lists or objects stand more than {MAX_DEPTH} deep within one another; {CORRECT}"


def shown_size(size: int) -> str:
    """e.g. `16 MiB`."""
    return f"{size // MIB:,} MiB" if size >= MIB else f"{size // 1024:,} KiB"
