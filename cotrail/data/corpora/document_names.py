"""The files of a folder, and which of them are documents or files of records, by how their names end in any case."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from cotrail.common import tables
from cotrail.common.text_files import unpacked_name

MARKDOWN = (".md", ".markdown")
HTML = (".html", ".htm", ".xhtml")
PDF = (".pdf",)
SUFFIXES = (*MARKDOWN, ".txt", *HTML, *PDF)
"""How the names of documents end."""


def suffix(path: Path) -> str:
    """How the name ends, in small letters and without the ending of a packed file."""
    return unpacked_name(path).suffix.lower()


def is_document(path: Path) -> bool:
    """Return whether the file's name is that of a document."""
    return suffix(path) in SUFFIXES


def holds_records(path: Path) -> bool:
    """Return whether the file's name is that of a file of records."""
    return suffix(path) in tables.SUFFIXES


def files_in(folder: Path, refuse: Callable[[OSError], None] | None = None) -> Iterator[Path]:
    """The files of a folder and of those below it, without hidden ones, sorted; refuse: called with what fails.

    Links to folders are followed, each folder is looked into once, so that loops end.
    """
    seen = set[tuple[int, int]]()
    for place, below, names in os.walk(folder, onerror=refuse, followlinks=True):
        about = Path(place).stat()
        is_new = (about.st_dev, about.st_ino) not in seen
        seen.add((about.st_dev, about.st_ino))
        below[:] = sorted(name for name in below if is_new and not name.startswith("."))
        files = (Path(place, name) for name in sorted(names) if is_new and not name.startswith("."))
        yield from (path for path in files if path.is_file())
