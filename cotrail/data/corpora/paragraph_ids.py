"""What a paragraph without a name of its own is called."""

from cotrail.core.paragraphs import Paragraph
from cotrail.data.corpora.digest_set import BYTES

ID_DIGITS = 2 * BYTES
"""An id is so many hexadecimal digits of the content's digest: the same content has the same id in every corpus."""


def identified(title: str, text: str) -> Paragraph:
    """The paragraph, with an id made of its content."""
    digest = Paragraph(id="", title=title, text=text).digest
    return Paragraph(id=digest[:ID_DIGITS], title=title, text=text)


def content(paragraph: Paragraph) -> bytes:
    """The digest of title and text, as a `DigestSet` takes it."""
    return bytes.fromhex(paragraph.digest[:ID_DIGITS])
