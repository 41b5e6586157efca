"""How far the followed runs are, and whether they and the followed questions have ended."""

from collections.abc import Collection, Iterator, Mapping
from time import monotonic

from sqlalchemy import Connection

from cotrail.models.queries.events import Standing, Subject, is_settled, read_standings, read_statuses
from cotrail.models.schema.states import QuestionStatus, RunState
from cotrail.services.live.events import Ended, LiveEvent, Progressed
from cotrail.services.live.followed import Followed

PAUSE_SECONDS = 1.0
"""The shortest pause between two readings of how far runs are."""

SHARE = 10
"""A reading takes at most one part in so many of the time, however large the runs are."""

News = Mapping[Subject, tuple[LiveEvent, ...]]


class Standings:
    """Reads them as often as their cost allows."""

    def __init__(self) -> None:
        self._due = self._rested = 0.0

    def news(self, connection: Connection, followed: Collection[Followed]) -> News:
        """What there is to tell besides events. The connection has the snapshot in which events were read."""
        due = [each for each in followed if each.is_due]
        questions = [each for each in due if each.subject.question is not None]
        runs = [each for each in due if each.subject.question is None and self._may_read(each)]
        news = _of_questions(connection, questions) if questions else {}
        return news | self._of_runs(connection, runs) if runs else news

    def _may_read(self, run: Followed) -> bool:
        """Whether it is time; whoever has just come is told at once how far the run is."""
        return monotonic() >= (self._due if run.progress else self._rested)

    def _of_runs(self, connection: Connection, runs: Collection[Followed]) -> dict[Subject, tuple[LiveEvent, ...]]:
        began = monotonic()
        news = _of_runs(connection, runs)
        ended = monotonic()
        self._rested = ended + SHARE * (ended - began)
        self._due = max(self._rested, ended + PAUSE_SECONDS)
        return news


def _of_runs(connection: Connection, runs: Collection[Followed]) -> dict[Subject, tuple[LiveEvent, ...]]:
    standings = read_standings(connection, {each.subject.run for each in runs})
    return {each.subject: tuple(_of_run(connection, each, standings.get(each.subject.run))) for each in runs}


def _of_run(connection: Connection, run: Followed, standing: Standing | None) -> Iterator[LiveEvent]:
    if standing is None:
        yield Ended(state=RunState.PRUNED)
        return
    progress = Progressed(run=run.subject.run, state=standing.state, questions=standing.questions, steps=standing.steps)
    if progress != run.progress:
        yield progress
    ends = standing.ended and _is_told(connection, run)
    run.looked_at(done=ends or not standing.ended)
    if ends:
        yield Ended(state=standing.state)


def _of_questions(connection: Connection, questions: Collection[Followed]) -> dict[Subject, tuple[LiveEvent, ...]]:
    statuses = read_statuses(connection, {each.subject.question or 0 for each in questions})
    return {
        each.subject: tuple(_of_question(connection, each, statuses.get(each.subject.question or 0)))
        for each in questions
    }


def _of_question(connection: Connection, question: Followed, status: str | None) -> Iterator[LiveEvent]:
    if status is None:
        yield Ended(state=RunState.PRUNED)
        return
    ended = status != QuestionStatus.OPEN
    ends = ended and _is_told(connection, question)
    question.looked_at(done=ends or not ended)
    if ends:
        yield Ended(state=status)


def _is_told(connection: Connection, followed: Followed) -> bool:
    """Whether followers know all that the snapshot has, once they are told what was just read."""
    return not followed.has_more and is_settled(connection, followed.subject)
