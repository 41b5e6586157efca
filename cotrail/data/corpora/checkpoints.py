"""How far the building of a corpus has come: a small file beside the corpus."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.errors import CorpusError

NOTHING = hashlib.sha256().hexdigest()
"""The digest of no input at all."""


class Checkpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place in the input, and what stood in the output when it was reached.

    files: how many input files are done; files_digest: the SHA-256 of their contents' digests.
    records: how many records of the next file are done; records_digest: their SHA-256.
    size: the output's bytes; paragraphs: how many it holds; duplicates: how many were left out.
    """

    dataset: str
    seed: int
    files: int = 0
    files_digest: str = NOTHING
    records: int = 0
    records_digest: str = NOTHING
    size: int = 0
    paragraphs: int = 0
    duplicates: int = 0
    finished: bool = False


def checkpoint_path(output: Path) -> Path:
    """Where the state of a corpus is."""
    return output.with_name(f"{output.name}.state")


def draft_path(output: Path) -> Path:
    """Where a corpus is as long as it isn't whole."""
    return output.with_name(f"{output.name}.part")


def read_checkpoint(output: Path) -> Checkpoint | None:
    """The state of the corpus; None where it wasn't begun."""
    path = checkpoint_path(output)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Checkpoint)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CorpusError(
            f"{path} can't be used ({error}); remove it and {draft_path(output)} to begin anew"
        ) from error


def write_checkpoint(output: Path, state: Checkpoint) -> None:
    """Puts the state in place in one move, on the disk before this returns."""
    path = checkpoint_path(output)
    draft = path.with_name(f"{path.name}.draft")
    with draft.open("wb") as file:
        file.write(msgspec.json.encode(state) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def combined_digest(paths: Sequence[Path]) -> "hashlib._Hash":
    """What is the same for files of the same contents in the same order, whatever their names; more can be added."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(file_digest(path))
    return digest


def file_digest(path: Path) -> bytes:
    """The SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
