"""How the names of documents end."""

from pathlib import Path

MARKDOWN = (".md", ".markdown")
SUFFIXES = (*MARKDOWN, ".txt")
"""How the names of documents end, in any case."""


def is_document(path: Path) -> bool:
    """Return whether the file's name is that of a document."""
    return path.suffix.lower() in SUFFIXES


def is_markdown(path: Path) -> bool:
    """Return whether the file's name is that of a Markdown file."""
    return path.suffix.lower() in MARKDOWN
