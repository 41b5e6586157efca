"""Indexing of corpora: paragraphs of files made searchable under a name."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from configuration.settings import settings
from cotrail.data.corpora.files import read_corpus


class Indexed(Struct, frozen=True, kw_only=True):
    """A corpus that was just indexed."""

    corpus: str
    paragraphs: int
    revision: str
    seconds: float


def index(paths: Sequence[Path], name: str, progress: Callable[[int], None] | None = None) -> Indexed:
    """Indexes the files as the corpus of that name; one that is there is replaced once the new one is complete.

    progress: called with the number of paragraphs so far.
    """
    started = time.monotonic()
    manifest = settings().corpus_store.build(name, read_corpus(paths), progress)
    return Indexed(
        corpus=name,
        paragraphs=manifest.paragraphs,
        revision=manifest.revision,
        seconds=time.monotonic() - started,
    )
