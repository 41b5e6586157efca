"""Advancing questions: replay each over its record, and record what follows.

Both happen in the transaction that recorded the latest results (docs/architecture.md, "Commit, then send").
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from operator import is_

from msgspec import Struct
from sqlalchemy import Connection, RowMapping

from cotrail.audit.sealed_columns import head_of
from cotrail.core.history import Failed, Finished, Halt, Next
from cotrail.core.replay import Replay
from cotrail.errors import BlockedError
from cotrail.models.records.budgets import BudgetCheck
from cotrail.models.records.dispatch import Dispatch
from cotrail.models.records.histories import History, read_histories
from cotrail.models.records.made_contents import MadeContents
from cotrail.models.records.paragraphs import ParagraphCache
from cotrail.models.records.questions import blocking, ending, halt_of, lock_questions, question_of, record_endings
from cotrail.models.records.runs import RunPlan, Runs
from cotrail.models.records.steps import NewStep, record_steps
from cotrail.models.schema.rows import Rows
from cotrail.models.schema.states import StepState

MOST_CACHED_QUESTIONS = 1000
"""The largest number of questions in a replay cache: more than a process's workers have under way at once."""


class _Cached(Struct, frozen=True):
    """A question's history as it was last read, and the replay that has consumed it."""

    history: History
    replay: Replay


class ReplayCache:
    """Replay cache: systems of questions that this process has advanced, each suspended where its record ends.

    It saves reading a history, and running its system, from the beginning at each step. Nothing depends on it: a
    question that isn't in it, or whose record has changed, is replayed from its beginning.
    """

    def __init__(self, paragraphs: ParagraphCache | None = None) -> None:
        self._paragraphs = paragraphs or ParagraphCache()
        self._cached: dict[int, _Cached] = {}

    def read(self, connection: Connection, question_ids: Sequence[int]) -> dict[int, History]:
        """Return the history of each question, reading only the steps that weren't read before."""
        cached = {each: self._cached[each].history for each in question_ids if each in self._cached}
        return read_histories(connection, question_ids, self._paragraphs, cached)

    def advance(
        self, question_id: int, history: History, begin: Callable[[], Replay], halt: Halt | None
    ) -> Next | Finished | Failed:
        """Return what follows a question's history; raises what `Replay.advance` and `begin` raise.

        halt: where a budget ended the question.
        """
        # Taken out, not looked up: a replay that raised is of no further use.
        cached = self._cached.pop(question_id, None)
        replay = cached.replay if cached is not None and _continues(cached.history, history) else begin()
        following = replay.advance(history.records, halt)
        if isinstance(following, Next):
            self._keep(question_id, _Cached(history, replay))
        return following

    def _keep(self, question_id: int, cached: _Cached) -> None:
        # A dict keeps the order of insertion, and each use inserts again: the first entry is the least recently used.
        self._cached[question_id] = cached
        while len(self._cached) > MOST_CACHED_QUESTIONS:
            oldest = self._cached.pop(next(iter(self._cached)))
            with suppress(Exception):  # an error of the system is reported where it is next replayed
                oldest.replay.close()


def begin_questions(connection: Connection, runs: Runs, question_ids: Iterable[int]) -> None:
    """Advance those of these questions that are open; the steps that follow wait to be admitted."""
    locked = lock_questions(connection, question_ids)
    advance_questions(connection, runs, locked, send=False, state=StepState.WAITING)


def advance_questions(
    connection: Connection,
    runs: Runs,
    locked: Sequence[RowMapping],
    *,
    send: bool = True,
    state: StepState = StepState.READY,
    cache: ReplayCache | None = None,
) -> dict[int, list[Dispatch]]:
    """Replay locked questions, record what follows, and return each question's messages.

    send: the caller sends the messages once this transaction is committed; without it, maintenance does.
    state: the state in which the steps that follow are recorded.
    """
    cache = cache or ReplayCache()
    histories = cache.read(connection, [row["id"] for row in locked])
    following: list[NewStep] = []
    ended: Rows = []
    contents = MadeContents()
    budgets = BudgetCheck(connection)
    for row in locked:
        history = histories[row["id"]]
        head = head_of(row["opened"], history.digests)
        try:
            plan = runs.plan(connection, row["run_id"])
            begin, halt = partial(_replay, plan, row, runs), halt_of(row)
            outcome = cache.advance(row["id"], history, begin, halt)
            if isinstance(outcome, Next) and halt is None:
                halt = budgets.halt(plan, row["id"], len(history.records), outcome)
                outcome = cache.advance(row["id"], history, begin, halt) if halt else outcome
        except BlockedError as error:
            ended.append(blocking(row["id"], error))
            continue
        if isinstance(outcome, Next):
            following += (
                NewStep(run=plan, question_id=row["id"], question=row["key"], step=step, previous=head)
                for step in outcome.steps
            )
            contents.add(row["id"], outcome.steps, history.records, plan)
        else:
            ended.append(ending(row["id"], outcome) | {"head": head})
    budgets.record()
    record_endings(connection, ended)
    contents.save(connection)
    return record_steps(connection, following, send=send, state=state)


def _replay(plan: RunPlan, row: RowMapping, runs: Runs) -> Replay:
    return Replay(plan.open(question_of(row), runs.find_system), plan.binding)


def _continues(earlier: History, history: History) -> bool:
    """Return whether the steps that had ended in the earlier history are the beginning of this one."""
    # By identity, which is cheaper than equality: `read_histories` returns the same objects for what it knows.
    return earlier.ended <= len(history.records) and all(map(is_, earlier.records[: earlier.ended], history.records))
