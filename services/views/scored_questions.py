"""The scores of every question of a run; those of a large one are computed by several processes at once."""

import gc
import os
import signal
from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy import Connection

from cotrail.core.ended_by import UNTIL
from cotrail.errors import UnavailableError
from cotrail.evaluation.metrics.question_scores import KindedScores
from cotrail.evaluation.metrics.scorers import Scorable, scorer
from cotrail.evaluation.metrics.scores import QuestionScores
from cotrail.models.queries.outcomes import Outcome, outcomes_of
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion
from cotrail.models.records.question_ids import read_question_ids
from cotrail.models.schema.database import connect
from cotrail.systems.registry import recorded_system

MOST_PROCESSES = 4
PART_QUESTIONS = 10_000
"""A process has at least so many questions to score: its start takes as long as some thousands."""


class Scored(KindedScores, frozen=True, kw_only=True):
    """The scores of a question of a run, and how far it is; see `cotrail.models.queries.outcomes.Outcome`."""

    key: str
    status: str
    ended_by: str


def scored_questions(connection: Connection, record: RunRecord) -> list[Scored]:
    """Score all questions of a run by the metrics of its dataset, in their order."""
    ids = read_question_ids(connection, record.id)
    processes = min(os.cpu_count() or 1, MOST_PROCESSES, len(ids) // PART_QUESTIONS)
    return _together(connection, record, ids, processes) if processes > 1 else _part(connection, record, ids)


def scores_by_question(connection: Connection, record: RunRecord) -> dict[str, KindedScores]:
    """The scores of each question of a run as it stands, by its id, in the questions' order.

    Those that a rule kept from being asked are left out.
    """
    return by_question(scored_questions(connection, record))


def by_question(scored: Iterable[Scored]) -> dict[str, KindedScores]:
    """The same of questions that are scored already."""
    asked = (each for each in scored if not each.ended_by.startswith(UNTIL))
    return {each.key: KindedScores(kinds=each.kinds, scores=each.scores) for each in asked}


def scores_of(record: RunRecord, question: Scorable) -> QuestionScores:
    """The scores of a run's question by the metrics of its dataset."""
    return scorer(record, recorded_system)(question)


def kinded_scores(record: RunRecord, question: Outcome | TracedQuestion) -> KindedScores:
    """The same with the kinds of the question."""
    return KindedScores(kinds=question.kinds, scores=scores_of(record, question))


def scored_of(record: RunRecord, outcomes: Iterable[Outcome]) -> Iterator[Scored]:
    """Score these questions of a run."""
    scores = scorer(record, recorded_system)
    for each in outcomes:
        yield Scored(kinds=each.kinds, scores=scores(each), key=each.key, status=each.status, ended_by=each.ended_by)


def _part(connection: Connection, record: RunRecord, ids: Sequence[int]) -> list[Scored]:
    return list(scored_of(record, outcomes_of(connection, ids)))


def _together(connection: Connection, record: RunRecord, ids: Sequence[int], processes: int) -> list[Scored]:
    """Score the first part here and each other one in a process of its own, which sees the same snapshot."""
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
    from multiprocessing import get_context

    size = -(-len(ids) // processes)
    own, *others = (ids[start : start + size] for start in range(0, len(ids), size))
    url = connection.engine.url.render_as_string(hide_password=False)
    snapshot = connection.exec_driver_sql("SELECT pg_export_snapshot()").scalar_one()
    # Forked, a process would share this one's connections and threads.
    with ProcessPoolExecutor(len(others), get_context("spawn"), _begin) as pool:
        parts = [pool.submit(_elsewhere, url, snapshot, record, part) for part in others]
        scored = _part(connection, record, own)
        try:
            return scored + [each for part in parts for each in part.result()]
        except BrokenProcessPool as error:
            raise UnavailableError(
                "a process that scored a part of the run was killed, perhaps for want of memory; try again"
            ) from error


def _begin() -> None:
    """Prepare a process of its own: on Ctrl-C the first one says what there is to say, and scores have no cycles."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()


def _elsewhere(url: str, snapshot: str, record: RunRecord, ids: Sequence[int]) -> list[Scored]:
    """Score a part of a run's questions by a connection of its own to a snapshot."""
    with connect(url).connect() as connection:
        connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        connection.exec_driver_sql(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")  # it can't hold up a worker
        return _part(connection, record, ids)
