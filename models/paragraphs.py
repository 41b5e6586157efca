"""The paragraphs that a process has met: a digest names the same text for ever, so each is read once."""

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection

from cotrail.paragraphs import Paragraph
from models.statements import PARAGRAPHS

MOST = 50_000
"""How many are kept at most, beside those that are needed at once."""


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
            known = self._known = {digest: known[digest] for digest in needed if digest in known}
        missing = sorted(needed - known.keys())
        if missing:
            for row in connection.execute(PARAGRAPHS, {"digests": missing}):
                known[row.digest] = Paragraph(id=row.digest, title=row.title, text=row.text)
        return known
