"""Manifest of an index, and the indexes of a folder by name."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import msgspec
from msgspec import Struct

from cotrail.common import nearest
from cotrail.common.printable_text import cut
from cotrail.common.text_files import write_whole
from cotrail.core.questions import Paragraph
from cotrail.errors import CorpusError, InputError, UnknownNameError

# What the manifest of an index says.


class Ranking(Struct, frozen=True, kw_only=True):
    """What decides an index's results, apart from its paragraphs.

    analyzer: how texts are made comparable, such as the analyzer of words or the identity of an embedder.
    k1, b: BM25's parameters, None for another ranking.
    """

    analyzer: str
    k1: float | None = None
    b: float | None = None


Similarity = Literal["dense", "late"]
"""What similarity is one of: whole texts' embeddings, or their tokens' (late interaction)."""

EMBEDDED_BY: Mapping[Similarity, str] = {"dense": "; embedded by ", "late": "; tokens embedded by "}
"""What the analyzer of an index with embeddings has between that of its words and the identity of its model."""


def similarity_of(analyzer: str) -> Similarity | None:
    """By which similarity an index with this analyzer can be searched; None without embeddings."""
    return next((kind for kind, between in EMBEDDED_BY.items() if between in analyzer), None)


class IndexManifest(Ranking, frozen=True, kw_only=True):
    """Description of an index as it was built.

    revision: the SHA-256 of the ranking, the settings if there are any, all paragraphs with their ids, in order, and
        `built`.
    paragraphs: their number, None where a server doesn't say. created_by: the versions of the software that built it.
    engine, format: the engine that searches it, empty for an index of others, and the revision of that engine's format.
    settings: the index's own. built: what its engine says of it, such as the recall of an approximate one.
    """

    revision: str
    paragraphs: int | None
    created_by: dict[str, str]
    engine: str = ""
    format: int = 1
    settings: dict[str, Any] = {}
    built: dict[str, Any] = {}


class FolderManifest(IndexManifest, frozen=True, kw_only=True):
    """Manifest of an index in a folder; folder: the folder of its files inside the index's own."""

    paragraphs: int
    folder: str


FILE_NAME = "manifest.json"
_NAME = re.compile("([A-Za-z0-9][A-Za-z0-9._-]*~)?[A-Za-z0-9][A-Za-z0-9._-]*")
"""The name of a corpus, behind that of a project where several share a service."""

LONGEST_NAME = 200
"""Bytes of a corpus's name: file systems take 255, and drafts of an index have longer names than the index."""


class Revision:
    """Computes an index's revision and counts its paragraphs while they pass by, once each and in order."""

    def __init__(self, ranking: Ranking, settings: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.count = 0
        decisive = [ranking.analyzer, ranking.k1, ranking.b, *([settings] if settings else [])]
        self._digest = hashlib.sha256(msgspec.json.encode(decisive, order="sorted"))

    def counted(self, paragraphs: Iterable[Paragraph]) -> Iterator[Paragraph]:
        """The paragraphs, each of which has been added when it is yielded."""
        for paragraph in paragraphs:
            self._digest.update(msgspec.msgpack.encode(paragraph))
            self.count += 1
            yield paragraph

    def add(self, built: Mapping[str, Any]) -> None:
        """Adds what an engine says of an index that it built."""
        if built:
            self._digest.update(msgspec.json.encode(built, order="sorted"))

    def __str__(self) -> str:
        """The digest of everything added so far."""
        return self._digest.hexdigest()


def installed(name: str) -> str:
    """The version of a package, for `created_by`."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def read_manifest(directory: Path) -> FolderManifest:
    """The manifest of the index in this folder; raises CorpusError where there is none or it can't be read."""
    try:
        return msgspec.json.decode((directory / FILE_NAME).read_bytes(), type=FolderManifest)
    except FileNotFoundError as error:
        raise CorpusError(f"there is no index in {directory}; build one with `cotrail index`") from error
    except (OSError, ValueError) as error:
        raise unusable(directory, error) from error


def write_manifest(directory: Path, manifest: FolderManifest) -> None:
    """Puts the manifest in place atomically; from then on the index is the one that it describes."""
    write_whole(directory / FILE_NAME, [msgspec.json.format(msgspec.json.encode(manifest), indent=2), b"\n"])


def unusable(directory: Path, reason: object) -> CorpusError:
    """The error for an index that is there and can't be searched."""
    return CorpusError(f"the index in {directory} can't be used ({reason}); build it again with `cotrail index`")


def checked_name(name: str) -> str:
    """The name; raises InputError where no corpus can have it."""
    if len(name.encode()) > LONGEST_NAME:
        raise InputError(f"a corpus can't be named {cut(name, 40)!r}: a name has {LONGEST_NAME} bytes at most")
    if not _NAME.fullmatch(name):
        raise InputError(
            f"a corpus can't be named {name!r}: use letters, digits, '.', '_' and '-', and begin with a letter or digit"
        )
    return name


def existing_corpus(corpora: Path, name: str) -> Path:
    """The folder of the index of this name; raises UnknownNameError, which lists the names there are."""
    directory = corpora / checked_name(name)
    if not (directory / FILE_NAME).is_file():
        raise unknown(name, corpus_names(corpora))
    return directory


def unknown(name: str, there: Iterable[str]) -> UnknownNameError:
    """The error for a corpus that doesn't exist; there: the names of those that do."""
    return UnknownNameError(f"{nearest.unknown('corpus', name, there)}; `cotrail index` makes one")


def corpus_names(corpora: Path) -> tuple[str, ...]:
    """The names of the indexes in this folder, sorted."""
    return tuple(sorted(manifest.parent.name for manifest in corpora.glob(f"*/{FILE_NAME}")))


def corpora(directory: Path) -> dict[str, FolderManifest]:
    """The manifests of the indexes in this folder by name, sorted."""
    return {name: read_manifest(directory / name) for name in corpus_names(directory)}
