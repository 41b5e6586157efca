"""The questions that a process has advanced lately: of these it neither reads nor replays again what it knows."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import is_

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.core.history import Failed, Finished, Next
from cotrail.core.replay import Replay
from models.records.histories import History, read_histories
from models.records.paragraphs import Paragraphs

MOST = 1000
"""How many questions are kept at most: more than a process's workers have begun at once."""


class Standing(Struct, frozen=True):
    """A question's history as it was last seen, and the replay as far as that has brought it."""

    history: History
    replay: Replay


class Begun:
    """Questions whose systems stand where their records have brought them.

    Nothing depends on it: a question that isn't here, or whose record has changed, is replayed from its beginning.
    """

    def __init__(self, paragraphs: Paragraphs | None = None) -> None:
        self._paragraphs = paragraphs or Paragraphs()
        self._standing: dict[int, Standing] = {}

    def read(self, connection: Connection, question_ids: Sequence[int]) -> dict[int, History]:
        """The steps of each of these questions."""
        known = {each: self._standing[each].history for each in question_ids if each in self._standing}
        return read_histories(connection, question_ids, self._paragraphs, known)

    def advance(self, question_id: int, history: History, begin: Callable[[], Replay]) -> Next | Finished | Failed:
        """What follows a question's history; raises what `Replay.advance` raises, and `begin`."""
        standing = self._standing.pop(question_id, None)
        replay = standing.replay if standing is not None and _goes_on(standing.history, history) else begin()
        following = replay.advance(history.records)
        if isinstance(following, Next):
            self._keep(question_id, Standing(history, replay))
        return following

    def _keep(self, question_id: int, standing: Standing) -> None:
        self._standing[question_id] = standing
        while len(self._standing) > MOST:
            longest = self._standing.pop(next(iter(self._standing)))
            with suppress(Exception):  # its system is replayed if it is to go on, and fails there
                longest.replay.close()


def _goes_on(earlier: History, history: History) -> bool:
    """Whether all that had ended is the history's beginning, read then and kept since."""
    return earlier.ended <= len(history.records) and all(map(is_, earlier.records[: earlier.ended], history.records))
