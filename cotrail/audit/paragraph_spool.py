"""Paragraphs spooled to disk: a run may refer to millions of them, and a forged bundle to any amount."""

import weakref
from collections.abc import Iterator, Mapping
from tempfile import SpooledTemporaryFile

import msgspec

from cotrail.core.paragraphs import Paragraph

IN_MEMORY = 64 * 2**20
"""Bytes kept in memory before all go to a temporary file, which disappears with the process."""


class ParagraphSpool(Mapping[str, Paragraph]):
    """Paragraphs by the digest under which they were added."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed when this is no longer used
        weakref.finalize(self, self._file.close)
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0

    def add(self, digest: str, title: str, text: str) -> None:
        """Add a paragraph; nothing checks that the digest is its own, which is for the caller to verify."""
        content = msgspec.msgpack.encode((title, text))
        self._file.seek(self._end)
        self._file.write(content)
        self._places[digest] = self._end, len(content)
        self._end += len(content)

    def size(self, digest: str) -> int:
        """Size of a paragraph in bytes; KeyError where it isn't there."""
        return self._places[digest][1]

    def __getitem__(self, digest: str) -> Paragraph:
        place, size = self._places[digest]
        self._file.seek(place)
        title, text = msgspec.msgpack.decode(self._file.read(size), type=tuple[str, str])
        return Paragraph(id=digest, title=title, text=text)

    def __contains__(self, digest: object) -> bool:
        return digest in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
