"""The paragraphs that a process has met: a digest names the same text for ever, so each is read once."""

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection

from cotrail.core.paragraphs import Paragraph
from models.execution.statements import PARAGRAPHS

MOST = 15_000
"""How many are kept at most, beside those that are needed at once; half of it is what five hundred questions collect,
and more of these a process has seldom begun at once."""


class Paragraphs:
    """Paragraphs by digest; each bears its digest for an id, as no corpus is asked."""

    def __init__(self) -> None:
        self._known: dict[str, Paragraph] = {}

    @property
    def known(self) -> Mapping[str, Paragraph]:
        """Those that were read; one may have been pruned since, or stored by a transaction that came to nothing."""
        return self._known

    def read(self, connection: Connection, digests: Iterable[str]) -> Mapping[str, Paragraph]:
        """All that are known, these among them as far as they are stored."""
        needed, known = set(digests), self._known
        if len(known) > MOST:
            lately = list(known)[-MOST // 2 :]
            known = self._known = {digest: known[digest] for digest in (*lately, *needed) if digest in known}
        missing = sorted(digest for digest in needed if digest not in known)
        if missing:
            for row in connection.execute(PARAGRAPHS, {"digests": missing}):
                known[row.digest] = Paragraph(id=row.digest, title=row.title, text=row.text)
        return known

    def add(self, stored: Mapping[str, Paragraph]) -> None:
        """Those that this process has stored, by digest: they needn't be read."""
        for digest, paragraph in stored.items():
            self._known[digest] = Paragraph(id=digest, title=paragraph.title, text=paragraph.text)
