"""A made-up search engine: paragraphs are ranked by how many words they share with the query."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.core.ports.retriever import SearchRequest
from cotrail.core.questions import Hit, Paragraph
from cotrail.engines.retrieval.engine import FolderEngine
from cotrail.engines.retrieval.manifest import FolderManifest, Ranking


class OverlapSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """folds: whether words of different case are the same."""

    folds: bool = True


class OverlapOptions(Struct, frozen=True):
    """at_least: the fewest shared words of a hit."""

    at_least: int = 1


class OverlapRetriever:
    """Searches a folder with one file."""

    def __init__(self, folder: Path, manifest: FolderManifest) -> None:
        self.revision = manifest.revision
        self._settings = msgspec.convert(manifest.settings, OverlapSettings)
        self._paragraphs = msgspec.json.decode((folder / "paragraphs.json").read_bytes(), type=list[Paragraph])

    def search(self, request: SearchRequest) -> tuple[Hit, ...]:
        """The paragraphs that share the most words."""
        least = request.options_as(OverlapOptions).at_least
        query = self._words(request.query)
        shared = ((len(query & self._words(each.statement)), each) for each in self._paragraphs)
        ranked = sorted((-count, each.id, each) for count, each in shared if count >= least)[: request.count]
        return tuple(Hit(paragraph=each, rank=n, score=-less) for n, (less, _, each) in enumerate(ranked, start=1))

    def paragraphs(self, ids: Sequence[str]) -> dict[str, Paragraph]:
        """The paragraphs of these ids."""
        return {each.id: each for each in self._paragraphs if each.id in ids}

    def titled(self, title: str) -> tuple[Paragraph, ...]:
        """The paragraphs of this title."""
        return tuple(each for each in self._paragraphs if each.title == title)

    def _words(self, text: str) -> set[str]:
        return set((text.lower() if self._settings.folds else text).split())


def _build(folder: Path, paragraphs: Iterable[Paragraph], _: OverlapSettings) -> None:
    (folder / "paragraphs.json").write_bytes(msgspec.json.encode(list(paragraphs)))


OVERLAP = FolderEngine(
    name="overlap",
    library="msgspec",
    format=2,
    settings=OverlapSettings,
    ranking=lambda _: Ranking(analyzer="words between spaces"),
    build=_build,
    open=OverlapRetriever,
)
