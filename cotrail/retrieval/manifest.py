"""What an index says about itself, and the indexes of a folder, one a name."""

import os
import re
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.errors import CorpusError, InputError, UnknownNameError

FILE_NAME = "manifest.json"


class IndexManifest(Struct, frozen=True, kw_only=True):
    """An index as it was built.

    revision: the SHA-256 of all paragraphs with their ids, in order, the analyzer and the ranking's parameters.
    paragraphs: how many there are; folder: where they are, inside the index's own folder.
    created_by: the versions of what built it.
    """

    revision: str
    paragraphs: int
    folder: str
    analyzer: str
    k1: float
    b: float
    created_by: dict[str, str]


def read_manifest(directory: Path) -> IndexManifest:
    """The manifest of the index in this folder; CorpusError where there is none or it can't be read."""
    try:
        return msgspec.json.decode((directory / FILE_NAME).read_bytes(), type=IndexManifest)
    except FileNotFoundError as error:
        raise CorpusError(f"there is no index in {directory}; build one with `cotrail index`") from error
    except (OSError, ValueError) as error:
        raise unusable(directory, error) from error


def write_manifest(directory: Path, manifest: IndexManifest) -> None:
    """Puts the manifest in place in one move; from then on the index is the one that it describes."""
    draft = directory / f"{FILE_NAME}.draft"
    with draft.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(directory / FILE_NAME)


def unusable(directory: Path, reason: object) -> CorpusError:
    """The error for an index that is there and can't be searched."""
    return CorpusError(f"the index in {directory} can't be used ({reason}); build it again with `cotrail index`")


def corpus_directory(corpora: Path, name: str) -> Path:
    """Where the index of this name is or would be; InputError for a name that can't be a folder's."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise InputError(
            f"a corpus can't be named {name!r}: use letters, digits, '.', '_' and '-', and begin with a letter or digit"
        )
    return corpora / name


def existing_corpus(corpora: Path, name: str) -> Path:
    """Where the index of this name is; UnknownNameError, which lists the names there are, where it isn't."""
    directory = corpus_directory(corpora, name)
    if not (directory / FILE_NAME).is_file():
        there = ", ".join(corpus_names(corpora)) or "none yet"
        raise UnknownNameError(f"there is no corpus {name!r} (there are: {there}); build it with `cotrail index`")
    return directory


def corpus_names(corpora: Path) -> tuple[str, ...]:
    """The names of the indexes in this folder, sorted."""
    return tuple(sorted(manifest.parent.name for manifest in corpora.glob(f"*/{FILE_NAME}")))


def corpora(directory: Path) -> dict[str, IndexManifest]:
    """The indexes in this folder by name, sorted."""
    return {name: read_manifest(directory / name) for name in corpus_names(directory)}
