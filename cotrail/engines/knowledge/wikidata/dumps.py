"""Dumps and extracts of entities.

A dump is a list with one entity a line, compressed or not; lines of entities without the list work too. An extract is
one object `{"entities": {...}}`, as Special:EntityData and the API return it.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from msgspec import field

from cotrail.common.json_files import decode
from cotrail.common.limits import MAX_SMALL_FILE_BYTES, shown
from cotrail.engines.knowledge.source_files import NumberedLines, ProgressCallback, ignore_progress, opened_files
from cotrail.engines.knowledge.wikidata.entities import EntityJson
from cotrail.errors import InputError


class _Record(EntityJson, frozen=True):
    """An entity, or an extract with several."""

    entities: dict[str, EntityJson] | list[None] = field(default_factory=dict)


def entities(
    paths: Sequence[Path], on_progress: ProgressCallback = ignore_progress
) -> Iterator[tuple[str, EntityJson]]:
    """The files' entities, each with its place, e.g. `dump.json.gz, line 3`. Dumps are streamed.

    Raises InputError where a file can't be read or is truncated, or a line isn't JSON or not an entity.
    """
    for path, lines in opened_files(paths, on_progress):
        start = next(lines, (1, b""))
        if start[1].strip() == b"{":  # an extract over several lines
            yield from decoded(b"".join(_bounded(path, chain([start], lines))), str(path))
        else:
            yield from _entities(path, chain([start], lines))


def _bounded(path: Path, lines: NumberedLines) -> Iterator[bytes]:
    """The lines of an extract, which is held in memory as a whole, up to a limit."""
    room = MAX_SMALL_FILE_BYTES
    for number, line in lines:
        room -= len(line)
        if room < 0:
            raise InputError(
                f"{path}, line {number}: an extract of more than {shown(MAX_SMALL_FILE_BYTES)}; give a dump"
            )
        yield line


def decoded(raw: bytes, place: str) -> Iterator[tuple[str, EntityJson]]:
    """The entity, or those of an extract, each with the place."""
    record = decode(raw, _Record, place, InputError)
    if isinstance(record.entities, dict) and record.entities:
        yield from ((place, each) for each in record.entities.values())
    else:
        yield place, record


def _entities(path: Path, lines: NumberedLines) -> Iterator[tuple[str, EntityJson]]:
    is_open = False
    for number, line in lines:
        stripped = line.strip()
        if stripped in {b"[", b"]"}:
            is_open = stripped == b"["
        elif stripped:
            yield from decoded(stripped.removesuffix(b","), f"{path}, line {number}")
    # A download that broke off between two lines can be read without any other error.
    if is_open:
        raise InputError(f"{path} breaks off: its list doesn't end; get the file again")
