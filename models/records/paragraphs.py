"""Cache of stored paragraphs. A digest always names the same text, so a process reads each paragraph once."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from sqlalchemy import TEXT, Connection, Label, RowMapping, bindparam, case, func, select
from sqlalchemy.dialects.postgresql import aggregate_order_by

from cotrail.core.actions.kind import ActionKind
from cotrail.core.questions import Hit, Paragraph
from cotrail.core.results import Result, Retrieved
from cotrail.models.schema.tables import paragraph_sets, paragraphs, steps

MOST_CACHED_PARAGRAPHS = 15_000
"""The largest number of paragraphs kept, in addition to those needed at once. Half of it is what five hundred questions
collect, and a process rarely has more questions than that under way."""

_digests = func.string_to_array(bindparam("digests", type_=TEXT), " ")  # sent as one text: psycopg is slow at lists
_READ = select(paragraphs.c.digest, paragraphs.c.title, paragraphs.c.text).where(
    paragraphs.c.digest == func.any(_digests)
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


# Recorded results of steps. The kind of each is given, so that this module needs no registry of them.

_HIT = (paragraph_sets.c.digest, paragraph_sets.c.paragraph_id, paragraph_sets.c.score)
_FOUND = (
    select(func.jsonb_agg(aggregate_order_by(func.jsonb_build_array(*_HIT), paragraph_sets.c.rank)))
    .where(paragraph_sets.c.step_id == steps.c.id)
    .correlate(steps)
    .scalar_subquery()
)


def hits_column(searching: Iterable[str]) -> Label[Any]:
    """Return what a step found, in the order of rank: digest, id in the corpus and score of each paragraph.

    searching: names of the kinds that find paragraphs.
    """
    return case((steps.c.kind.in_(searching), _FOUND)).label("hits")


def read_result(kind: ActionKind[Any, Any], row: RowMapping, contents: Mapping[str, Paragraph]) -> Result:
    """Return the result of a row of result and `hits_column`; raises what reading a damaged record does."""
    if kind.finds_paragraphs:
        lists = Retrieved.read_lists(row["result"])
        hits = (
            Hit(
                paragraph=Paragraph(id=paragraph_id, title=contents[digest].title, text=contents[digest].text),
                rank=rank,
                score=float(score),
                lists=lists[rank - 1] if rank <= len(lists) else (),
            )
            for rank, (digest, paragraph_id, score) in enumerate(row["hits"] or (), start=1)
        )
        return Retrieved(hits=tuple(hits))
    result: Result = msgspec.convert(row["result"], kind.result)
    return result
