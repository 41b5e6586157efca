"""Advancing questions: replay each over its record, and record what follows.

Both happen in the transaction that recorded the latest results (docs/architecture.md, "Commit, then send").

Contents that systems make themselves: paragraphs that no search found, demonstrations that the run didn't bring.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from operator import is_

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, RowMapping, text

from cotrail.audit.records import head_of
from cotrail.core.actions.generate import Prompted
from cotrail.core.actions.registry import kind_of
from cotrail.core.demonstrations import Demonstrations
from cotrail.core.history import Failed, Finished, Halts, Next, Raised, Recorded, Step
from cotrail.core.questions import Paragraph
from cotrail.core.replay import MOST_SECONDS, Replay
from cotrail.core.results import Retrieved
from cotrail.errors import BlockedError
from cotrail.models.records.budgets import BudgetCheck
from cotrail.models.records.contents import ParagraphCache, save_demonstrations, save_paragraphs
from cotrail.models.records.questions import (
    binding_of,
    blocking,
    ending,
    halts_of,
    lock_questions,
    question_of,
    record_endings,
)
from cotrail.models.records.runs import RunPlan, Runs
from cotrail.models.records.steps import Dispatch, History, NewStep, read_histories, record_steps
from cotrail.models.schema.base import Rows, insert_rows
from cotrail.models.schema.database import reason_of, refused
from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import made_paragraphs

_PATIENT = text(f"SET LOCAL idle_in_transaction_session_timeout = '{round(2 * MOST_SECONDS)}s'")
"""Code of others may take longer than transactions may idle; said before each question, where idling begins again."""

_NEW_REFERENCES = insert_rows(made_paragraphs, "question_id", "digest").on_conflict_do_nothing()


class MadeContents:
    """Contents made by systems that the next steps of some questions refer to."""

    def __init__(self) -> None:
        self._paragraphs: dict[str, Paragraph] = {}
        self._demonstrations: dict[str, Demonstrations] = {}
        self._references: Rows = []

    def add(self, question_id: int, following: Sequence[Step], history: Sequence[Recorded], plan: RunPlan) -> None:
        """Add what these steps of a question refer to; history, plan: the question's steps so far, and its run."""
        made = _made(following, history)
        self._references += ({"question_id": question_id, "digest": digest} for digest in made)
        self._paragraphs |= made
        self._demonstrations |= _brought(following, plan)

    def save(self, connection: Connection) -> None:
        """Store what isn't stored yet."""
        save_paragraphs(connection, self._paragraphs)
        save_demonstrations(connection, self._demonstrations)
        if self._references:
            connection.execute(_NEW_REFERENCES, {"rows": self._references})


def _brought(following: Sequence[Step], plan: RunPlan) -> dict[str, Demonstrations]:
    """Return the demonstrations that steps refer to and that aren't the run's."""
    run_digests = {shots.digest for shots in plan.shots.values()}
    prompts = [step.action.prompt for step in following if isinstance(step.action, Prompted)]
    shown = (prompt.demonstrations for prompt in prompts if prompt.demonstrated is not None)
    return {shots.digest: shots for shots in shown if shots.digest not in run_digests}


def _made(following: Sequence[Step], history: Sequence[Recorded]) -> dict[str, Paragraph]:
    """Return the paragraphs that steps refer to and that none of the question's searches found."""
    # By identity, as a replay hands the same objects through: most of what was found needs no digest here.
    retrieved = {
        id(hit.paragraph) for record in history if isinstance(record.outcome, Retrieved) for hit in record.outcome.hits
    }
    referred = (paragraph for step in following for paragraph in kind_of(step.action).paragraphs(step.action))
    return {paragraph.digest: paragraph for paragraph in referred if id(paragraph) not in retrieved}


MOST_CACHED_QUESTIONS = 1000
"""The largest number of questions in a replay cache: more than a process's workers have under way at once."""


class _Cached(Struct, frozen=True):
    """A question's history as it was last read, and the replay that has consumed it, with what that hasn't seen."""

    history: History
    replay: Replay
    raised: tuple[Raised, ...]


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
        self, question_id: int, history: History, begin: Callable[[], Replay], halts: Halts
    ) -> Next | Finished | Failed:
        """Return what follows a question's history; raises what `Replay.advance` and `begin` raise."""
        # Taken out, not looked up: a replay that raised is of no further use.
        cached = self._cached.pop(question_id, None)
        known = cached is not None and cached.raised == halts.raised and _continues(cached.history, history)
        replay = cached.replay if cached is not None and known else begin()
        following = replay.advance(halts.seen_by_system(history.records), halts.halt)
        if not isinstance(following, Next):
            return following
        self._keep(question_id, _Cached(history, replay, halts.raised))
        return Next(tuple(replace(step, sequence=step.sequence + halts.passed) for step in following.steps))

    def _keep(self, question_id: int, cached: _Cached) -> None:
        # A dict keeps the order of insertion, and each use inserts again: the first entry is the least recently used.
        self._cached[question_id] = cached
        while len(self._cached) > MOST_CACHED_QUESTIONS:
            oldest = self._cached.pop(next(iter(self._cached)))
            with suppress(Exception):  # an error of the system is reported where it is next replayed
                oldest.replay.close()


def begin_questions(connection: Connection, runs: Runs, question_ids: Iterable[int]) -> None:
    """Advance those of these questions that are open; the steps that follow wait to be admitted.

    A question of which the database refuses what follows is blocked, and holds up no other one.
    """
    ids = list(question_ids)
    try:
        # A savepoint: what the database refuses is undone for these questions, and not for the whole submission.
        with connection.begin_nested():
            locked = lock_questions(connection, ids)
            advance_questions(connection, runs, locked, send=False, state=StepState.WAITING)
    except Exception as error:
        if not refused(error):
            raise
        if len(ids) == 1:
            block_questions(connection, ids, unrecordable(error))
            return
        for each in ids:
            begin_questions(connection, runs, [each])


def block_questions(connection: Connection, question_ids: Iterable[int], error: BlockedError) -> None:
    """Record what blocks these questions, none of which has a step under way."""
    record_endings(connection, [blocking(each, error) for each in question_ids])


def unrecordable(error: BaseException) -> BlockedError:
    """Return what blocks a question where this error kept what follows from being recorded."""
    return BlockedError(f"what follows can't be recorded: {reason_of(error)}")


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
            if plan.is_others:
                connection.execute(_PATIENT)
            begin, halts = partial(_replay, plan, row, runs), halts_of(row)
            outcome = cache.advance(row["id"], history, begin, halts)
            # A question that a budget has ended already is on its way to its answer, and isn't ended again.
            if isinstance(outcome, Next) and halts.after is None:
                halted = budgets.halted(plan, row["id"], halts, len(history.records), outcome)
                if halted is not None:
                    outcome = cache.advance(row["id"], history, begin, halted)
                else:
                    # Of actions yielded together, a budget of steps lets as many begin as it has room for.
                    outcome = Next(outcome.steps[: budgets.of(plan).room(len(history.records))])
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
    # Before the steps that refer to them: pruning then finds the reference, or waits for this transaction.
    contents.save(connection)
    return record_steps(connection, following, send=send, state=state)


def _replay(plan: RunPlan, row: RowMapping, runs: Runs) -> Replay:
    return Replay(plan.open(question_of(row), runs.find_system), binding_of(row, plan), watched=plan.is_others)


def _continues(earlier: History, history: History) -> bool:
    """Return whether the steps that had ended in the earlier history are the beginning of this one."""
    # By identity, which is cheaper than equality: `read_histories` returns the same objects for what it knows.
    return earlier.ended <= len(history.records) and all(map(is_, earlier.records[: earlier.ended], history.records))
