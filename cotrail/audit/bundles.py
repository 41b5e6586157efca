"""Bundles: a run's audit trail as one file (JSON Lines under Zstandard), to be verified without a database."""

import hashlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from cotrail.audit.records import FORMAT, UNREADABLE, Record, end_of, read_record, text, write_record
from cotrail.audit.referenced_contents import ReferencedContents
from cotrail.errors import BundleError, InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LEVEL = 9
"""Zstandard's level; prompts repeat each other over long distances, which only the larger windows find."""

MOST_LINE_BYTES = 64 * 2**20
"""Maximum bytes of a line."""

SMALL_BUNDLE_BYTES, MOST_COMPRESSION = 2**28, 4000
"""Decompression bomb limit: a file may decompress to so many bytes, or to so many times its size if that is more.

Prompts of 100,000 tokens that differ only at their ends compress about a thousandfold; a bomb does so far more."""

_BLOCK = 2**20


def bundle_pieces(records: Iterable[Record], run: str, version: str) -> Iterator[bytes]:
    """Yield the records of a run as the pieces of a bundle's file; version: cotrail's."""
    frame, hashed, count = zstd.ZstdCompressor(level=LEVEL), hashlib.sha256(), 0
    for record in bundled(records, run, version):
        line = _line(record)
        hashed.update(line)
        count += 1
        if piece := frame.compress(line):
            yield piece
    yield frame.compress(write_record(end_of(count, hashed.hexdigest())), zstd.ZstdCompressor.FLUSH_FRAME)


def write_bundle(path: Path, pieces: Iterable[bytes], run: str) -> int:
    """Write the pieces of a bundle and move the complete file into place; returns the number of its lines.

    InputError where the file exists already; BundleError where `read_bundle` would refuse it.
    """
    if path.exists():
        raise InputError(f"{path} is there already, and an audit trail is never overwritten; choose another --output")
    draft = path.with_name(f".{path.name}.draft")
    frame, count, size = zstd.ZstdDecompressor(), 0, 0
    try:
        with draft.open("wb") as file:
            for piece in pieces:
                file.write(piece)
                for lines in _decompressed(frame, piece):
                    count, size = count + lines.count(b"\n"), size + len(lines)
        if size > _allowed(draft):
            raise BundleError(
                f"the record of {run} is so repetitive that a bundle of it looks like a decompression bomb"
            )
        draft.replace(path)
    except zstd.ZstdError as error:
        raise BundleError(f"what came for {path} is no bundle ({error}); try again") from error
    finally:
        draft.unlink(missing_ok=True)
    return count


def _decompressed(frame: zstd.ZstdDecompressor, piece: bytes) -> Iterator[bytes]:
    yield frame.decompress(piece, _BLOCK)
    while not (frame.needs_input or frame.eof):
        yield frame.decompress(b"", _BLOCK)


def bundled(records: Iterable[Record], run: str, version: str) -> Iterator[Record]:
    """The records of a bundle without the last: those of the store, and each prompt after its step."""
    contents = ReferencedContents()
    yield Record("bundle", {"format": FORMAT, "cotrail": version, "run": run})
    for record in records:
        yield record
        if record.table in ("demonstrations", "paragraphs"):
            list(contents.take(record))
        elif record.table == "steps":
            yield from _prompt(record, contents)


def read_bundle(path: Path) -> Iterator[Record]:
    """Read the records of a bundle; BundleError where the file isn't one, is damaged or was cut off."""
    try:
        for number, line in enumerate(_lines(path), start=1):
            record = read_record(line, number)
            if record.table == "bundle":
                _check_format(path, record)
            yield record
    except (zstd.ZstdError, EOFError) as error:
        raise BundleError(f"{path} is damaged, cut off, or no bundle of `cotrail audit export` ({error})") from error


def _check_format(path: Path, bundle: Record) -> None:
    written, version = text(bundle.row, "format"), text(bundle.row, "cotrail")
    if written != FORMAT:
        raise BundleError(
            f"{path} has the record format {written}, and this cotrail reads {FORMAT}: verify it with the cotrail that "
            f"wrote it, {version}"
        )


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of the file's one frame, one in memory at a time."""
    line, number = bytearray(), 1
    for block in _blocks(path):
        start = 0
        while end := block.find(b"\n", start) + 1:
            yield bytes(line + block[start:end])
            line.clear()
            start, number = end, number + 1
        line += block[start:]
        if len(line) > MOST_LINE_BYTES:
            raise BundleError(
                f"line {number} of {path} is longer than {MOST_LINE_BYTES:,} bytes: `cotrail audit export` writes none"
            )
    if line:
        yield bytes(line)


def _blocks(path: Path) -> Iterator[bytes]:
    """Decompress the file's only frame block by block."""
    left = _allowed(path)
    with path.open("rb") as file:
        frame = zstd.ZstdDecompressor()
        while not frame.eof:
            compressed = file.read(_BLOCK) if frame.needs_input else b""
            if frame.needs_input and not compressed:
                raise EOFError("it ends in the middle")
            block = frame.decompress(compressed, _BLOCK)
            left -= len(block)
            if left < 0:
                raise BundleError(f"{path} holds more than any bundle of its size that `cotrail audit export` writes")
            yield block
        if frame.unused_data or file.read(1):
            raise BundleError(f"{path} continues after its end: something was added to it")


def _allowed(path: Path) -> int:
    """Maximum bytes that a file may decompress to."""
    return max(SMALL_BUNDLE_BYTES, MOST_COMPRESSION * path.stat().st_size)


def _line(record: Record) -> bytes:
    line = write_record(record)
    if len(line) > MOST_LINE_BYTES:
        raise BundleError(
            f"a row of {record.table} has {len(line):,} bytes, and no bundle holds more than {MOST_LINE_BYTES:,}"
        )
    return line


def _prompt(step: Record, contents: ReferencedContents) -> Iterator[Record]:
    """A step's prompt, if it has one that can be rebuilt; if it can't, verification says why."""
    try:
        prompt = contents.prompt(step.row)
    except UNREADABLE:
        return
    if prompt is not None:
        yield Record("prompts", {"step_id": text(step.row, "id"), "text": prompt.render()})
