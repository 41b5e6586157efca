"""Replaying a run: running its system's code over the recorded steps, without models or indexes; nothing is changed."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, RowMapping, select

from cotrail.core.history import Failed, Finished, Recorded
from cotrail.core.replay import advance
from cotrail.errors import BlockedError
from cotrail.models.records.histories import read_histories
from cotrail.models.records.paragraphs import ParagraphCache
from cotrail.models.records.questions import MOST_REPLAYED, ending, halts_of, question_of, read_question_ids
from cotrail.models.records.runs import FindSystem, Runs
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import questions, steps

COMPARED_COLUMNS = ("answer", "sentences", "collected", "weighing", "reason")
"""The columns of an ended question that are compared, beside its status."""

MOST_CHARACTERS = 200
"""The largest number of characters shown of a value that differs."""


class Replayed(Struct, frozen=True, kw_only=True):
    """A replayed question; divergence: where the code now departs from its record, empty where it agrees.

    edited: the numbers of the steps that a person edited.
    """

    key: str
    status: str
    steps: int
    divergence: str
    edited: tuple[int, ...] = ()


def replay_run(connection: Connection, run_id: str, find_system: FindSystem) -> Iterator[Replayed]:
    """Replay every question of a run, in their order."""
    runs, paragraphs = Runs(find_system), ParagraphCache()
    ids = read_question_ids(connection, run_id)
    for start in range(0, len(ids), MOST_REPLAYED):
        chunk = ids[start : start + MOST_REPLAYED].tolist()
        query = select(questions).where(questions.c.id.in_(chunk)).order_by(questions.c.position)
        rows = connection.execute(query).mappings().all()
        histories = read_histories(connection, chunk, paragraphs)
        edited = _edited(connection, chunk)
        for row in rows:
            history = histories[row["id"]].records
            divergence = _divergence(connection, row, history, runs)
            yield Replayed(
                key=row["key"],
                status=row["status"],
                steps=len(history),
                divergence=divergence,
                edited=tuple(edited[row["id"]]),
            )


def _edited(connection: Connection, ids: Sequence[int]) -> dict[int, list[int]]:
    """Return the numbers of the steps of each of these questions that a person edited."""
    query = select(steps.c.question_id, steps.c.sequence).where(steps.c.question_id.in_(ids), steps.c.edit.is_not(None))
    edited = defaultdict[int, list[int]](list)
    for question_id, sequence in connection.execute(query.order_by(steps.c.question_id, steps.c.sequence)):
        edited[question_id].append(sequence)
    return edited


def _divergence(connection: Connection, row: RowMapping, history: Sequence[Recorded], runs: Runs) -> str:
    try:
        plan = runs.plan(connection, row["run_id"])
        halts, system = halts_of(row), plan.open(question_of(row), runs.find_system)
        outcome = advance(system, halts.told(history), plan.binding, halts.halt)
    except BlockedError as error:
        return str(error)
    if not isinstance(outcome, Finished | Failed):
        ended = row["status"] in (QuestionStatus.FINISHED, QuestionStatus.FAILED)
        return f"it is recorded as {row['status']}, and the code now asks for more" if ended else ""
    return _difference(row, msgspec.json.decode(msgspec.json.encode(ending(row["id"], outcome))))


def _difference(row: RowMapping, now: dict[str, Any]) -> str:
    """Return where the record of a question differs from how it ends now; empty for one that hasn't ended."""
    if row["status"] in (QuestionStatus.CANCELLED, QuestionStatus.BLOCKED, QuestionStatus.OPEN):
        return ""
    if row["status"] != now["status"]:
        return f"it is recorded as {row['status']}, and would be {now['status']} now"
    different = [name for name in COMPARED_COLUMNS if row[name] != now[name]]
    if row["ended_by"] not in (None, now["ended_by"]):
        different.append("ended_by")
    if not different:
        return ""
    name = different[0]
    return f"its {name} is recorded as {_shown(row[name])}, and would be {_shown(now[name])} now"


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
