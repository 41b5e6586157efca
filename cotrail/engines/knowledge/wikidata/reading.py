"""Files of entities.

A dump has one entity a line inside a list, packed or not; lines of entities without the list will do too. An extract is
one object `{"entities": {...}}`, as Special:EntityData and the API give it.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from msgspec import field

from cotrail.common.input_limits import MAX_SMALL_FILE_BYTES, shown_size
from cotrail.common.json_files import decode
from cotrail.engines.knowledge.files import Lines, Tell, opened_files, quietly
from cotrail.engines.knowledge.wikidata.entities import EntityJson
from cotrail.errors import InputError


class _Record(EntityJson, frozen=True):
    """An entity, or an extract with several."""

    entities: dict[str, EntityJson] | list[None] = field(default_factory=dict)


def entities(paths: Sequence[Path], tell: Tell = quietly) -> Iterator[tuple[str, EntityJson]]:
    """The files' entities, each with its place, e.g. `dump.json.gz, line 3`; one of a dump is held at a time.

    InputError: a file can't be read or breaks off, a line isn't JSON or no entity.
    """
    for path, lines in opened_files(paths, tell):
        start = next(lines, (1, b""))
        if start[1].strip() == b"{":  # an extract, laid out over lines
            yield from decoded(b"".join(_bounded(path, chain([start], lines))), str(path))
        else:
            yield from _entities(path, chain([start], lines))


def _bounded(path: Path, lines: Lines) -> Iterator[bytes]:
    """The lines of an extract, which is held whole."""
    room = MAX_SMALL_FILE_BYTES
    for number, line in lines:
        room -= len(line)
        if room < 0:
            raise InputError(
                f"{path}, line {number}: an extract of more than {shown_size(MAX_SMALL_FILE_BYTES)}; give a dump"
            )
        yield line


def decoded(raw: bytes, place: str) -> Iterator[tuple[str, EntityJson]]:
    """The entity that this is, or those of an extract, each with the place."""
    record = decode(raw, _Record, place, InputError)
    if isinstance(record.entities, dict) and record.entities:
        yield from ((place, each) for each in record.entities.values())
    else:
        yield place, record


def _entities(path: Path, lines: Lines) -> Iterator[tuple[str, EntityJson]]:
    is_open = False
    for number, line in lines:
        stripped = line.strip()
        if stripped in {b"[", b"]"}:
            is_open = stripped == b"["
        elif stripped:
            yield from decoded(stripped.removesuffix(b","), f"{path}, line {number}")
    if is_open:
        raise InputError(f"{path} breaks off: its list doesn't end; get the file again")
