"""Rules of runs, looked at while they go on: which runs ask no further questions."""

import logging

from sqlalchemy import Connection, Engine, exists, select

from cotrail.errors import CotrailError
from cotrail.evaluation.metrics.scorers import scorer
from cotrail.evaluation.metrics.stop_rules import UNTIL, StopRule, rule_of
from cotrail.models.queries.prefixes import Prefix
from cotrail.models.queries.runs import read_run
from cotrail.models.schema.states import DesiredState, StepState
from cotrail.models.schema.tables import runs, steps
from cotrail.systems.registry import recorded_system

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
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
            self._prefix.advance(connection, LOOK_SECONDS)
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
        """Look at a run that goes on from its beginning again: `cotrail retry` may have opened what had ended."""
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
