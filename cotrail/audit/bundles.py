"""Bundles: a run's audit trail as one file, records as JSON Lines under Zstandard, for whoever has no database."""

import hashlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from cotrail.audit.contents import UNREADABLE, Contents
from cotrail.audit.records import Record, read_record, text, write_record
from cotrail.audit.verifying import end_of
from cotrail.errors import BundleError, InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FORMAT = "1"
"""The version of the form of bundles."""

LEVEL = 9
"""Zstandard's; prompts repeat each other, which only a larger window sees."""


def write_bundle(path: Path, records: Iterable[Record], run: str, version: str) -> int:
    """Writes the records of a run as a bundle, and puts the file in place once it is whole; returns its lines.

    version: that of cotrail. InputError where there is such a file already.
    """
    if path.exists():
        raise InputError(f"{path} is there already, and an audit trail is never overwritten; choose another --output")
    draft = path.with_name(f".{path.name}.draft")
    hashed, count = hashlib.sha256(), 0
    try:
        with zstd.open(draft, "wb", level=LEVEL) as file:
            for record in bundled(records, run, version):
                line = write_record(record)
                hashed.update(line)
                count += 1
                file.write(line)
            file.write(write_record(end_of(count, hashed.hexdigest())))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return count + 1


def bundled(records: Iterable[Record], run: str, version: str) -> Iterator[Record]:
    """The records of a bundle but for the last: those of the store, each prompt behind its step."""
    contents = Contents()
    yield Record("bundle", {"format": FORMAT, "cotrail": version, "run": run})
    for record in records:
        yield record
        if record.table in ("demonstrations", "paragraphs"):
            list(contents.take(record))
        elif record.table == "steps":
            yield from _prompt(record, contents)


def read_bundle(path: Path) -> Iterator[Record]:
    """The records of a bundle; BundleError where it isn't one, or was cut off."""
    try:
        with zstd.open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                record = read_record(line, number)
                if record.table == "bundle" and record.row["format"] != FORMAT:
                    raise BundleError(f"{path} is a bundle of the form {record.row['format']}: take a later cotrail")
                yield record
    except (zstd.ZstdError, EOFError) as error:
        raise BundleError(f"{path} is damaged, cut off, or no bundle at all ({error})") from error


def _prompt(step: Record, contents: Contents) -> Iterator[Record]:
    """A step's prompt, where it has one that can be built; where it can't, the verification says why."""
    try:
        prompt = contents.prompt(step.row)
    except UNREADABLE:
        return
    if prompt is not None:
        yield Record("prompts", {"step_id": text(step.row, "id"), "text": prompt.render()})
