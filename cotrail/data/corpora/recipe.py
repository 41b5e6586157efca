"""A recipe for building a dataset's corpus from its published files (IRCoT, appendix A)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct


class Recipe(Struct, frozen=True, kw_only=True):
    """Recipe for one corpus.

    needs: the files that it is made from, in words; seems: what `apparent_content` says of such a file.
    files: expands the named paths to files.
    records: yields the records of a file with their places.
    paragraphs: yields the titles and texts of a record, given its place, its bytes and the seed.
    shuffles: whether the seed matters; paper_paragraphs: the paper's number of paragraphs (footnote 18).
    """

    needs: str
    seems: str | None
    files: Callable[[Sequence[Path]], tuple[Path, ...]] = tuple
    records: Callable[[BinaryIO, str], Iterator[tuple[str, bytes]]]
    paragraphs: Callable[[str, bytes, int], Iterable[tuple[str, str]]]
    shuffles: bool = False
    paper_paragraphs: int
