"""Long parts of requests, which are stored apart from them."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from cotrail.core.demonstrations import Demonstrations
from cotrail.core.questions import Paragraph


class Stored(Struct, frozen=True):
    """Long parts of requests, which are stored once and stand in requests by their digests.

    Both raise where nothing of a digest is stored: `paragraphs` KeyError, `demonstrations` whatever its store does.
    """

    paragraphs: Mapping[str, Paragraph]
    demonstrations: Callable[[str], Demonstrations]

    def referred(self, digests: tuple[str, ...]) -> tuple[Paragraph, ...]:
        """The paragraphs of these digests; raises KeyError."""
        return tuple(self.paragraphs[digest] for digest in digests)
