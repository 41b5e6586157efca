"""Store of knowledge sources: a folder in which each source is built once and then only read."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from cotrail.common.nearest import unknown
from cotrail.core.ports.retriever import Knowledge, Source
from cotrail.core.table_sentences import Table
from cotrail.engines.knowledge.database import About, Database, ProgressCallback, ignore_progress, is_built
from cotrail.errors import InputError, UnknownNameError

SOURCES: tuple[Source, ...] = get_args(Source)

TABLE: Source = "table"
"""The source that needs no building: it knows only the table of the question."""

NEEDED_FILES = {
    "wikidata": "its dump (`wikidata-*-all.json.gz`) or extracts of it",
    "wordnet": "the folder of its database files, or nothing where the package that ships them is installed",
    "conceptnet": "its assertions (`conceptnet-assertions-5.7.0.csv.gz`)",
}
"""The files that each source is built from."""


class KnowledgeStore:
    """Keeps knowledge sources by name, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> tuple[Source, ...]:
        """The sources that are built, sorted."""
        return tuple(sorted(name for name in SOURCES if name == TABLE or is_built(self._folder / name)))

    def revision(self, source: Source) -> str:
        """The revision that a run pins: everything that decides what is found; raises UnknownNameError if not built."""
        return self.open(source).revision

    def open(self, source: Source) -> Knowledge:
        """The source, safe for many threads; it stays as it is even while it is rebuilt.

        Raises UnknownNameError where it isn't built, InputError where it can't be read.
        """
        folder = self._built(source)
        match source:
            case "table":
                return Table()
            case "wikidata":
                from cotrail.engines.knowledge.wikidata.source import Wikidata

                return Wikidata(folder)
            case "wordnet":
                from cotrail.engines.knowledge.wordnet import WordNet

                return WordNet(folder)
            case "conceptnet":
                from cotrail.engines.knowledge.conceptnet import ConceptNet

                return ConceptNet(folder)

    def about(self, source: Source) -> About | None:
        """The description of a source; None for `table`."""
        return None if source == TABLE else Database(self._built(source)).about

    def build(self, source: Source, files: Sequence[Path], on_progress: ProgressCallback = ignore_progress) -> About:
        """Builds a source from its publisher's files.

        The former one can be used until the new one is complete; an error or an interruption leaves it as it is.
        Raises InputError where these aren't the source's files, or one of them is broken.
        """
        folder = self._folder / source
        match source:
            case "wikidata" if files:
                from cotrail.engines.knowledge.wikidata.building import build_wikidata

                return build_wikidata(files, folder, on_progress)
            case "conceptnet" if files:
                from cotrail.engines.knowledge.conceptnet import build_conceptnet

                return build_conceptnet(files, folder, on_progress)
            case "wordnet" if len(files) <= 1:
                from cotrail.engines.knowledge.wordnet import build_wordnet, shipped

                return build_wordnet(files[0] if files else shipped(), folder)
        if source == TABLE:
            raise InputError("a table needs no building: a question brings its own along")
        raise InputError(f"{source} is built from {NEEDED_FILES[source]}; name that")

    def _built(self, source: Source) -> Path:
        folder = self._folder / source
        if source == TABLE or is_built(folder):
            return folder
        raise UnknownNameError(
            f"{source} isn't built yet: `cotrail knowledge build {source} FILE...` makes it from "
            f"{NEEDED_FILES[source]}; "
            'for questions about a corpus of your own, set knowledge = ["corpus"] in the run file\'s [settings]'
        )


def find_source(name: str) -> Source:
    """The source of that name; raises UnknownNameError, which lists those there are."""
    for source in SOURCES:
        if source == name:
            return source
    raise UnknownNameError(unknown("knowledge source", name, SOURCES))
