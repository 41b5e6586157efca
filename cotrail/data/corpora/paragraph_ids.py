"""Ids of paragraphs: of those published without one, many millions at once, and looked up in several corpora."""

from collections.abc import Iterable, Sequence

from cotrail.core.ports.retriever import Corpus
from cotrail.core.questions import Paragraph

# Memory-efficient set of digests, for many millions of them.

DIGEST_BYTES = 16
"""Length of a digest: among ten million digests, the probability that two are equal by chance is about 10^-25."""

_HEAD_BYTES = 2


class DigestSet:
    """Digests of 16 bytes, at about 17 bytes of memory each; a `set` of bytes objects takes about 100.

    The first two bytes choose a bucket, which is one bytearray of the digests' remaining bytes in a row.
    """

    def __init__(self) -> None:
        self._tails: dict[bytes, bytearray] = {}

    def add(self, digest: bytes) -> bool:
        """Add a digest; return whether it is new."""
        if len(digest) != DIGEST_BYTES:
            raise ValueError(f"a digest has {DIGEST_BYTES} bytes, not {len(digest)}")
        tails = self._tails.setdefault(digest[:_HEAD_BYTES], bytearray())
        if _holds(tails, digest[_HEAD_BYTES:]):
            return False
        tails += digest[_HEAD_BYTES:]
        return True

    def __contains__(self, digest: bytes) -> bool:
        return _holds(self._tails.get(digest[:_HEAD_BYTES], bytearray()), digest[_HEAD_BYTES:])


def _holds(tails: bytearray, tail: bytes) -> bool:
    place = tails.find(tail)
    while place % len(tail) and place >= 0:  # A match across two neighbours is none; look further.
        place = tails.find(tail, place + 1)
    return place >= 0


# Ids of paragraphs that were published without one.

ID_DIGITS = 2 * DIGEST_BYTES
"""Hexadecimal digits of an id, a prefix of the content's digest: equal contents have equal ids in every corpus."""


def identified(title: str, text: str) -> Paragraph:
    """The paragraph, with an id made of its content."""
    digest = Paragraph(id="", title=title, text=text).digest
    return Paragraph(id=digest[:ID_DIGITS], title=title, text=text)


# Paragraphs looked up in several corpora.


def paragraphs_in(corpora: Iterable[Corpus], ids: Sequence[str]) -> dict[str, Paragraph]:
    """The paragraphs of these ids, of the first corpus that has each."""
    paragraphs: dict[str, Paragraph] = {}
    for corpus in corpora:
        paragraphs = corpus.paragraphs(ids) | paragraphs
    return paragraphs


def titled_in(corpora: Iterable[Corpus], title: str) -> tuple[Paragraph, ...]:
    """The paragraphs of exactly this title in all corpora."""
    return tuple(paragraph for corpus in corpora for paragraph in corpus.titled(title))
