"""Recorded results of steps. The kind of each is given, so that this module needs no registry of them."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from sqlalchemy import Label, RowMapping, case, func, select
from sqlalchemy.dialects.postgresql import aggregate_order_by

from cotrail.core.actions.kind import ActionKind
from cotrail.core.paragraphs import Paragraph
from cotrail.core.results import Result, Retrieved
from cotrail.models.records.paragraphs import hit_of
from cotrail.models.schema.tables import paragraph_sets, steps

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
        hits = (
            hit_of(rank, paragraph_id, contents[digest].title, contents[digest].text, score)
            for rank, (digest, paragraph_id, score) in enumerate(row["hits"] or (), start=1)
        )
        return Retrieved(hits=tuple(hits))
    result: Result = msgspec.convert(row["result"], kind.result)
    return result
