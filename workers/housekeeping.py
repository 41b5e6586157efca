"""What maintenance does in addition to its sweeps: closing runs, rules that stop them, retention and summaries."""

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, Engine, exists, func, select
from sqlalchemy.exc import SQLAlchemyError

from cotrail.errors import CotrailError, InputError
from cotrail.evaluation.metrics.question_scores import scorer
from cotrail.evaluation.metrics.stop_rules import UNTIL, StopRule, rule_of
from cotrail.models.commands.pruning import Pruned, begun, ended_before, prune
from cotrail.models.commands.summarizing import VERSION, due_runs
from cotrail.models.execution.admission import Closed, close_run, runs_to_close
from cotrail.models.queries.outcomes import Prefix
from cotrail.models.queries.runs import read_run
from cotrail.models.schema.database import SUMMARIZER
from cotrail.models.schema.states import DesiredState, StepState
from cotrail.models.schema.tables import runs, steps
from cotrail.systems.registry import recorded_system
from cotrail.workers.leading import Backoff

logger = logging.getLogger(__name__)

SHORTEST_PAUSE, LONGEST_PAUSE = 60.0, 3600.0
"""Bounds of the backoff, in seconds, of a run that can't be closed."""


# Closing runs in a thread alongside the sweeps: the digest over millions of questions takes minutes.


class Closing:
    """Closes runs one after another in a thread; one that can't be closed doesn't hold up the others.

    closed: called in the transaction that seals a run.
    """

    def __init__(self, engine: Engine, closed: Closed) -> None:
        self._engine = engine
        self._closed = closed
        self._failed: dict[str, Backoff] = {}
        self._thread = threading.Thread()

    def start_due(self) -> None:
        """Begin to close the runs that are due, unless others are being closed."""
        if self._thread.is_alive():
            return
        with self._engine.begin() as connection:
            ended = runs_to_close(connection)
        # Of runs that were closed or removed since, nothing is kept.
        self._failed = {run_id: backoff for run_id, backoff in self._failed.items() if run_id in ended}
        due = [run_id for run_id in ended if run_id not in self._failed or self._failed[run_id].due]
        if due:
            self._thread = threading.Thread(target=self._close, args=[due], name="closing", daemon=True)
            self._thread.start()

    def _close(self, run_ids: Sequence[str]) -> None:
        for run_id in run_ids:
            try:
                if close_run(self._engine, run_id, self._closed):
                    logger.info("all questions of %s have ended", run_id)
            except SQLAlchemyError as error:
                backoff = self._failed.setdefault(run_id, Backoff(SHORTEST_PAUSE, LONGEST_PAUSE))
                backoff.attempted(succeeded=False)
                logger.warning("%s can't be closed, trying again in %.0f s: %s", run_id, backoff.pause, error)


# Rules of runs, looked at while they go on: which runs ask no further questions.

RULES_SECONDS = 0.1
"""How long scoring the questions of a run may take before others are looked at, not counting the last chunk."""

_RULED = (
    select(runs.c.id)
    .where(
        runs.c.digest.is_(None),  # so that an index leaves out the runs that are closed
        runs.c.desired_state.in_([DesiredState.ACTIVE, DesiredState.PAUSED]),
        runs.c.provenance.has_key(UNTIL),
        exists().where(steps.c.run_id == runs.c.id, steps.c.state == StepState.WAITING),
    )
    .order_by(runs.c.id)
)


class Look:
    """What one has seen of a run with a rule: the scores of its first questions, and whether these meet it."""

    def __init__(self, connection: Connection, run_id: str) -> None:
        record = read_run(connection, run_id)
        rule = rule_of(record.provenance)
        if rule is None:
            raise ValueError(f"run {run_id} has no rule")
        self.rule: StopRule = rule
        self.met = False
        metrics = [self.rule.metric]
        self._prefix = Prefix(run_id, scorer(record, recorded_system, metrics), metrics)

    def again(self, connection: Connection) -> bool:
        """Look at the questions that have ended since; returns whether the rule is met."""
        seen = self._prefix.questions
        if not self.met:
            self._prefix.advance(connection, RULES_SECONDS)
        if self._prefix.questions > seen:
            self.met = self.rule.stops_after(self._prefix.scores[self.rule.metric]) is not None
        return self.met


class Stopping:
    """The runs with a rule that this process has looked at. What it holds follows from the store, and may be lost."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._looks: dict[str, Look | None] = {}

    def stopped(self) -> dict[str, str]:
        """Look at the runs that have a rule and questions waiting; returns those whose rule is met."""
        with self._engine.begin() as connection:
            ruled = connection.execute(_RULED).scalars().all()
            self._looks = {run: self._looks[run] if run in self._looks else _look(connection, run) for run in ruled}
            return {run: str(look.rule) for run, look in self._looks.items() if look and look.again(connection)}

    def forget(self, run_id: str) -> None:
        """Look at a run that is under way from its beginning again: `cotrail retry` may have opened what had ended."""
        look = self._looks.get(run_id)
        if look is None or not look.met:
            self._looks.pop(run_id, None)


def _look(connection: Connection, run_id: str) -> Look | None:
    """The first look at a run; None where this process lacks its dataset or metric, so that all questions are asked."""
    try:
        return Look(connection, run_id)
    except CotrailError as error:
        logger.warning("%s asks all its questions, as its rule can't be looked at here: %s", run_id, error)
        return None


PAUSE_SECONDS = 3600
"""The interval between two searches for runs to remove."""


class Retention:
    """Does now and then what `cotrail prune --older-than DAYS` does, and completes interrupted prunings.

    days: how long runs are kept after their end; None for always.
    """

    def __init__(self, engine: Engine, days: float | None) -> None:
        self._engine = engine
        self._days = days
        self._pruning: Iterator[Pruned] = iter(())
        self._looks_at = time.monotonic()

    def remove_next(self) -> None:
        """Remove the next few rows of runs to be removed, if there are any."""
        try:
            if next(self._pruning, None) is None and time.monotonic() >= self._looks_at:
                # Before the look: one that fails isn't repeated with every sweep.
                self._looks_at = time.monotonic() + PAUSE_SECONDS
                self._look()
        except InputError as error:
            logger.warning("a run that was about to be removed is under way again: %s", error)

    def _look(self) -> None:
        with self._engine.begin() as connection:
            run_ids = begun(connection)
            if self._days is not None:
                run_ids += ended_before(connection, self._days)
        if run_ids:
            logger.info("%d runs are removed: %s", len(run_ids), ", ".join(run_ids))
            self._pruning = prune(self._engine, run_ids)


# Summarizing questions that have ended, alongside maintenance: in a process of its own, which goes behind all others.

MODULE = "cotrail.services.summarizing"
"""What summarizes; a process of its own, and so no import."""

LOOK_SECONDS = 10.0
"""Between two looks for questions that have ended."""


class Watcher:
    """Looks after something, named, in a thread; pause: seconds between two looks."""

    def __init__(self, named: str, pause: float) -> None:
        self._named = named
        self._pause = pause
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=named, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._stopping.set()
        self._thread.join()

    def look(self) -> None:
        """See the class."""
        raise NotImplementedError

    def end(self) -> None:
        """End what it began."""
        raise NotImplementedError

    def _run(self) -> None:
        while not self._stopping.wait(self._pause):
            try:
                self.look()
            except SQLAlchemyError as error:
                logger.warning("%s can't be looked after, trying again: %s", self._named, error)
        self.end()


class SummaryRunner(Watcher):
    """Has a process summarize questions where there are any; look: seconds between two looks. What it wrote stays."""

    def __init__(self, engine: Engine, look: float = LOOK_SECONDS) -> None:
        super().__init__("summaries", look)
        self._engine = engine
        self._process: subprocess.Popen[bytes] | None = None

    def look(self) -> None:
        """Start the process where there is something to do and none runs, on whichever machine."""
        if self._process is not None and self._process.poll() is None:
            return
        self.end()
        with self._engine.connect() as connection:
            # Only tried: it is free again with this transaction, and the new process takes it for itself.
            free = connection.execute(select(func.pg_try_advisory_xact_lock(SUMMARIZER))).scalar()
            due = free and due_runs(connection, VERSION, 1)
        if due:
            # In a session of its own: Ctrl-C in a terminal reaches the parent alone.
            command = [sys.executable, "-P", "-m", MODULE]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def end(self) -> None:
        if self._process is None:
            return
        if self._process.stdin is not None:
            self._process.stdin.close()  # which ends it
        self._process.wait()
        self._process = None
