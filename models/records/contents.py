"""Contents that steps refer to by digest, paragraphs and demonstrations, each stored once.

A digest always names the same text, so a process reads each paragraph once.
"""

from collections.abc import Iterable, Mapping

import msgspec
from sqlalchemy import TEXT, Connection, Executable, bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.core.demonstrations import Demonstrations
from cotrail.core.questions import Paragraph
from cotrail.errors import UnreadableError
from cotrail.models.schema.base import Rows, insert_rows
from cotrail.models.schema.tables import demonstrations, paragraphs

CHUNK_ROWS = 500
"""The largest number of rows in one statement."""

_NEW_PARAGRAPHS, _NEW_DEMONSTRATIONS = (
    insert_rows(table, *columns).on_conflict_do_nothing().returning(table.c.digest)
    for table, columns in ((paragraphs, ("digest", "title", "text")), (demonstrations, ("digest", "body")))
)
_digests = bindparam("digests", type_=ARRAY(TEXT))
_LOCKED_PARAGRAPHS, _LOCKED_DEMONSTRATIONS = (
    # FOR KEY SHARE: any number of transactions may refer to a row at once, and only its removal waits.
    select(table.c.digest).where(table.c.digest == func.any(_digests)).with_for_update(read=True, key_share=True)
    for table in (paragraphs, demonstrations)
)


def save_paragraphs(connection: Connection, paragraphs_by_digest: Mapping[str, Paragraph]) -> None:
    """Store paragraphs by digest."""
    rows = [
        {"digest": digest, "title": paragraphs_by_digest[digest].title, "text": paragraphs_by_digest[digest].text}
        for digest in sorted(paragraphs_by_digest)
    ]
    for start in range(0, len(rows), CHUNK_ROWS):
        _store(connection, _NEW_PARAGRAPHS, _LOCKED_PARAGRAPHS, rows[start : start + CHUNK_ROWS])


def save_demonstrations(connection: Connection, shots: Mapping[str, Demonstrations]) -> None:
    """Store demonstrations by digest."""
    rows = [{"digest": digest, "body": msgspec.to_builtins(shots[digest])} for digest in sorted(shots)]
    _store(connection, _NEW_DEMONSTRATIONS, _LOCKED_DEMONSTRATIONS, rows)


def read_demonstrations(connection: Connection, digest: str) -> Demonstrations:
    """Return the demonstrations of that digest; the store holds them since a run was submitted with them.

    Raises UnreadableError where they were removed by hand.
    """
    body = connection.execute(select(demonstrations.c.body).where(demonstrations.c.digest == digest)).scalar()
    if body is None:
        raise UnreadableError(f"the demonstrations {digest:.64} aren't in the store; restore them from a backup")
    return msgspec.convert(body, Demonstrations)


def _store(connection: Connection, insert: Executable, lock: Executable, rows: Rows) -> None:
    """Store rows that aren't there, and keep pruning from removing any before this transaction has referred to them.

    Rows come in the order of their digests: two transactions that insert the same ones wait for each other, and would
    deadlock if they came in different orders.
    """
    while rows:
        # No other transaction sees yet what this one inserts. What was there has to be locked, and pruning may have
        # removed it between the two statements: then it is inserted in the next round.
        stored = set(connection.execute(insert, {"rows": rows}).scalars())
        if there := [row["digest"] for row in rows if row["digest"] not in stored]:
            stored.update(connection.execute(lock, {"digests": there}).scalars())
        rows = [row for row in rows if row["digest"] not in stored]


MOST_CACHED_PARAGRAPHS = 15_000
"""The largest number of paragraphs kept, in addition to those needed at once. Half of it is what five hundred questions
collect, and a process rarely has more questions than that under way."""

_joined_digests = func.string_to_array(
    bindparam("digests", type_=TEXT), " "
)  # sent as one text: psycopg is slow at lists
_READ = select(paragraphs.c.digest, paragraphs.c.title, paragraphs.c.text).where(
    paragraphs.c.digest == func.any(_joined_digests)
)


class ParagraphCache:
    """Paragraphs by digest. The digest is also their id, as no corpus is asked. most: the largest number kept."""

    def __init__(self, most: int = MOST_CACHED_PARAGRAPHS) -> None:
        self._most = most
        self._known: dict[str, Paragraph] = {}

    @property
    def known(self) -> Mapping[str, Paragraph]:
        """The cached paragraphs. Some may have been pruned since, or stored by a transaction that was rolled back."""
        return self._known

    def read(self, connection: Connection, digests: Iterable[str]) -> Mapping[str, Paragraph]:
        """Return all cached paragraphs, after reading those of these digests that are stored."""
        needed, cached = set(digests), self._known
        if len(cached) > self._most:
            # A new dict rather than deletions: threads that were handed the old mapping may still look into it.
            lately = list(cached)[-self._most // 2 :]
            cached = self._known = {digest: cached[digest] for digest in (*lately, *needed) if digest in cached}
        missing = sorted(needed.difference(cached))
        if missing:
            for digest, title, text in connection.execute(_READ, {"digests": " ".join(missing)}):
                cached[digest] = Paragraph(id=digest, title=title, text=text)
        return cached

    def add(self, stored: Mapping[str, Paragraph]) -> None:
        """Add paragraphs, by digest, that this process has stored, so that they needn't be read."""
        for digest, paragraph in stored.items():
            self._known[digest] = Paragraph(id=digest, title=paragraph.title, text=paragraph.text)
