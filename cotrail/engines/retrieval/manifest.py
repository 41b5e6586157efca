"""What an index says about itself, and the indexes of a folder, one a name."""

import hashlib
import os
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.core.paragraphs import Paragraph
from cotrail.errors import CorpusError, InputError, UnknownNameError

FILE_NAME = "manifest.json"


class IndexManifest(Struct, frozen=True, kw_only=True):
    """An index as it was built.

    revision: the SHA-256 of all paragraphs with their ids, in order, the analyzer and the ranking's parameters.
    paragraphs: how many there are. k1, b: None where somebody else fills the index. created_by: the versions of what
    built it.
    """

    revision: str
    paragraphs: int
    analyzer: str
    k1: float | None
    b: float | None
    created_by: dict[str, str]


class FolderManifest(IndexManifest, frozen=True, kw_only=True):
    """One whose files are in this folder, inside the index's own."""

    folder: str


class Revision:
    """Makes an index's revision and counts while its paragraphs pass by, once each and in order."""

    def __init__(self, analyzer: str, k1: float, b: float) -> None:
        self.count = 0
        self._digest = hashlib.sha256(msgspec.json.encode([analyzer, k1, b]))

    def add(self, paragraph: Paragraph) -> bytes:
        """Takes in the next paragraph; returns it as MessagePack."""
        content = msgspec.msgpack.encode(paragraph)
        self._digest.update(content)
        self.count += 1
        return content

    def __str__(self) -> str:
        """The digest of all so far."""
        return self._digest.hexdigest()


def installed(name: str) -> str:
    """The version of a package, for `created_by`."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def read_manifest(directory: Path) -> FolderManifest:
    """The manifest of the index in this folder; CorpusError where there is none or it can't be read."""
    try:
        return msgspec.json.decode((directory / FILE_NAME).read_bytes(), type=FolderManifest)
    except FileNotFoundError as error:
        raise CorpusError(f"there is no index in {directory}; build one with `cotrail index`") from error
    except (OSError, ValueError) as error:
        raise unusable(directory, error) from error


def write_manifest(directory: Path, manifest: FolderManifest) -> None:
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


def checked_name(name: str) -> str:
    """The name; InputError for one that no corpus can have."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise InputError(
            f"a corpus can't be named {name!r}: use letters, digits, '.', '_' and '-', and begin with a letter or digit"
        )
    return name


def corpus_directory(corpora: Path, name: str) -> Path:
    """Where the index of this name is or would be; InputError for a name that no corpus can have."""
    return corpora / checked_name(name)


def existing_corpus(corpora: Path, name: str) -> Path:
    """Where the index of this name is; UnknownNameError, which lists the names there are, where it isn't."""
    directory = corpus_directory(corpora, name)
    if not (directory / FILE_NAME).is_file():
        raise unknown(name, corpus_names(corpora))
    return directory


def unknown(name: str, there: Iterable[str]) -> UnknownNameError:
    """The error for a corpus that isn't among those there are."""
    listed = ", ".join(there) or "none yet"
    return UnknownNameError(f"there is no corpus {name!r} (there are: {listed}); build it with `cotrail index`")


def corpus_names(corpora: Path) -> tuple[str, ...]:
    """The names of the indexes in this folder, sorted."""
    return tuple(sorted(manifest.parent.name for manifest in corpora.glob(f"*/{FILE_NAME}")))


def corpora(directory: Path) -> dict[str, FolderManifest]:
    """The indexes in this folder by name, sorted."""
    return {name: read_manifest(directory / name) for name in corpus_names(directory)}
