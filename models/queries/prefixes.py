"""Scores of a run's first questions while it goes on, read incrementally.

Which questions end first depends on them: the short ones do. So scores so far are those of a prefix: of the questions
before the first, by position, that has no end yet, whenever those behind it ended.
"""

import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile

from sqlalchemy import BigInteger, Connection, bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.evaluation.metrics.scores import QuestionScores
from cotrail.models.queries.outcomes import ASKED, Outcome, outcomes_of
from cotrail.models.records.question_ids import read_question_ids
from cotrail.models.schema.tables import questions

CHUNK_QUESTIONS = 200
"""The number of questions read at once."""

_ids = bindparam("ids", type_=ARRAY(BigInteger))
_ENDED = select(questions.c.id).where(questions.c.id == func.any(_ids), questions.c.status.in_(ASKED))


class Prefix:
    """The prefix of a run's questions that are finished or failed, and their scores by some metrics.

    questions: how many these are; scores: of each, by the metric, None where it doesn't have it.
    """

    def __init__(self, run_id: str, score: Callable[[Outcome], QuestionScores], metrics: Iterable[str]) -> None:
        self.scores: dict[str, list[float | None]] = {name: [] for name in metrics}
        self.questions = 0
        self._run = run_id
        self._score = score
        self._ids: array[int] | None = None

    def advance(self, connection: Connection, seconds: float) -> None:
        """Score the questions that have ended since; after so many seconds, those behind them are left for later."""
        until = time.monotonic() + seconds
        if self._ids is None:
            self._ids = read_question_ids(connection, self._run)
        while asked := self._ids[self.questions : self.questions + CHUNK_QUESTIONS].tolist():
            ended = set(connection.execute(_ENDED, {"ids": asked}).scalars())
            self._add(connection, list(takewhile(ended.__contains__, asked)))
            if len(ended) < len(asked) or time.monotonic() >= until:
                return

    def _add(self, connection: Connection, ids: Sequence[int]) -> None:
        for each in list(outcomes_of(connection, ids)):  # all of them or, where the database goes away, none
            for name, score in self._score(each).items():
                self.scores[name].append(score)
        self.questions += len(ids)
