"""Calls of a run's language model: each prompt, and what the model wrote."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import groupby

import msgspec
from sqlalchemy import Connection, RowMapping, select

from cotrail.core.actions.generate import Prompted
from cotrail.core.actions.kind import digests_in
from cotrail.core.actions.registry import KINDS
from cotrail.core.paragraphs import Paragraph
from cotrail.core.results import Generated
from cotrail.core.stored_parts import Stored
from cotrail.evaluation.experiments.recorded_runs import ModelCall
from cotrail.models.records.contents import read_demonstrations
from cotrail.models.records.question_ids import read_question_ids
from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import paragraphs, questions, steps

CHUNK = 100
"""The number of questions read at once."""


def read_calls(connection: Connection, run_id: str, kind: str) -> Iterator[tuple[str, tuple[ModelCall, ...]]]:
    """Yield the key of each question of a run that has finished steps of a kind with prompts, with these in order."""
    ids = read_question_ids(connection, run_id)
    demonstrations = cache(partial(read_demonstrations, connection))
    for start in range(0, len(ids), CHUNK):
        rows = _read_rows(connection, ids[start : start + CHUNK].tolist(), kind)
        stored = Stored(_read_paragraphs(connection, rows), demonstrations)
        for key, of_question in groupby(rows, lambda row: str(row["key"])):
            yield key, tuple(_calls(of_question, stored))


def _read_rows(connection: Connection, ids: Sequence[int], kind: str) -> Sequence[RowMapping]:
    query = (
        select(questions.c.key, steps.c.kind, steps.c.request, steps.c.result)
        .join_from(questions, steps, steps.c.question_id == questions.c.id)
        .where(questions.c.id.in_(ids), steps.c.kind == kind, steps.c.state == StepState.FINISHED)
        .order_by(questions.c.position, steps.c.sequence)
    )
    return connection.execute(query).mappings().all()


def _read_paragraphs(connection: Connection, rows: Sequence[RowMapping]) -> Mapping[str, Paragraph]:
    referred = {digest for row in rows for digest in digests_in(row["request"])}
    found = connection.execute(select(paragraphs).where(paragraphs.c.digest.in_(referred)))
    return {row.digest: Paragraph(id=row.digest, title=row.title, text=row.text) for row in found}


def _calls(rows: Iterable[RowMapping], stored: Stored) -> Iterator[ModelCall]:
    for row in rows:
        action = KINDS[row["kind"]].read(row["request"], stored)
        if isinstance(action, Prompted):
            yield ModelCall(prompt=action.prompt, written=msgspec.convert(row["result"], Generated).raw)
