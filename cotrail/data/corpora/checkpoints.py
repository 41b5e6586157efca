"""Checkpoints of corpus builds: a small file beside the corpus says how far its build has come."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.errors import CorpusError

EMPTY_DIGEST = hashlib.sha256().hexdigest()
"""The digest of empty input."""


class Checkpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A position in the input, and the output at that position.

    files: input files completed; files_digest: the SHA-256 of their contents' digests.
    records: records of the next file completed; records_digest: their SHA-256.
    size: bytes of the output; paragraphs: their number in it; duplicates: paragraphs left out.
    """

    dataset: str
    seed: int
    files: int = 0
    files_digest: str = EMPTY_DIGEST
    records: int = 0
    records_digest: str = EMPTY_DIGEST
    size: int = 0
    paragraphs: int = 0
    duplicates: int = 0
    finished: bool = False


def checkpoint_path(output: Path) -> Path:
    """The path of a corpus's checkpoint."""
    return output.with_name(f"{output.name}.state")


def draft_path(output: Path) -> Path:
    """The path of a corpus while it is incomplete."""
    return output.with_name(f"{output.name}.part")


def read_checkpoint(output: Path) -> Checkpoint | None:
    """Read the checkpoint of a corpus; None where there is none."""
    path = checkpoint_path(output)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Checkpoint)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CorpusError(
            f"{path} can't be used ({error}); remove it and {draft_path(output)} to start over"
        ) from error


def write_checkpoint(output: Path, state: Checkpoint) -> None:
    """Replace the checkpoint atomically; it is on disk before this returns."""
    path = checkpoint_path(output)
    draft = path.with_name(f"{path.name}.draft")
    with draft.open("wb") as file:
        file.write(msgspec.json.encode(state) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def combined_digest(paths: Sequence[Path]) -> "hashlib._Hash":
    """Digest over the files' contents in this order, regardless of their names; further files can be added to it."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(file_digest(path))
    return digest


def file_digest(path: Path) -> bytes:
    """The SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
