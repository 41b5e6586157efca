"""What the manifest of an index says."""

from typing import Any

from msgspec import Struct


class Ranking(Struct, frozen=True, kw_only=True):
    """What decides an index's results, beside its paragraphs.

    analyzer: how texts are made comparable, such as the analyzer of words or the identity of an embedder.
    k1, b: BM25's parameters, None for another ranking.
    """

    analyzer: str
    k1: float | None = None
    b: float | None = None


class IndexManifest(Ranking, frozen=True, kw_only=True):
    """Description of an index as it was built.

    revision: the SHA-256 of the ranking, the settings if there are any, and all paragraphs with their ids, in order.
    paragraphs: their number. created_by: the versions of the software that built it.
    engine, format: the engine that searches it, and the revision of that engine's format. settings: the index's own.
    """

    revision: str
    paragraphs: int
    created_by: dict[str, str]
    engine: str = ""
    format: int = 1
    settings: dict[str, Any] = {}


class FolderManifest(IndexManifest, frozen=True, kw_only=True):
    """Manifest of an index in a folder; folder: the folder of its files inside the index's own."""

    folder: str
    engine: str = "tantivy"  # the only one there was before manifests named it
