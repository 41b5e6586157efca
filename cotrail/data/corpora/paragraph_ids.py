"""Ids of paragraphs that were published without one."""

from cotrail.core.paragraphs import Paragraph
from cotrail.data.corpora.digest_set import DIGEST_BYTES

ID_DIGITS = 2 * DIGEST_BYTES
"""Hexadecimal digits of an id, a prefix of the content's digest: equal contents have equal ids in every corpus."""


def identified(title: str, text: str) -> Paragraph:
    """The paragraph, with an id made of its content."""
    digest = Paragraph(id="", title=title, text=text).digest
    return Paragraph(id=digest[:ID_DIGITS], title=title, text=text)


def content(paragraph: Paragraph) -> bytes:
    """The digest of title and text, as a `DigestSet` takes it."""
    return bytes.fromhex(paragraph.digest[:ID_DIGITS])
