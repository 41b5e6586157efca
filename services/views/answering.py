"""A question while it is answered: its steps as they end, and what is written meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import suppress

from sqlalchemy import Engine, select

from cotrail.configuration.settings import settings
from cotrail.errors import InputError
from cotrail.models.queries.traces import read_traced
from cotrail.models.schema.states import QuestionStatus, StepState
from cotrail.models.schema.tables import steps
from cotrail.services.runs.asked_question import AskedQuestion
from cotrail.services.runs.requests import ASKED_ID
from cotrail.services.views.ask_events import AnyAskEvent, Asked, StepEnded, Token
from cotrail.services.views.asked_answers import answer_of
from cotrail.services.views.shown_steps import shown_steps

POLL_SECONDS = 0.2
"""How long the record isn't read where nothing is heard: of what no worker tells, or where Redis is away."""

ENDED_STEPS = (StepState.FINISHED, StepState.FAILED)


def answering(engine: Engine, asked: AskedQuestion, give_up: Callable[[], object]) -> Iterator[AnyAskEvent | None]:
    """Has a recorded question answered, and yields what happens until it has ended; None where nothing has for a while.

    give_up: called where whoever listens stops before that.
    """
    watched = _Watched(engine, asked.id)
    try:
        yield from _until_ended(watched, asked)
    except BaseException:
        with suppress(InputError):  # it may just have ended
            give_up()
        raise
    yield answer_of(watched.question)


def _until_ended(watched: "_Watched", asked: AskedQuestion) -> Iterator[AnyAskEvent | None]:
    # Celery takes half a second to import.
    from cotrail.tasks.hearing import Hearing
    from cotrail.tasks.routing import send

    with Hearing(settings().broker, settings().broker_prefix, asked.id) as hearing:
        send(asked.messages)
        yield Asked(run=asked.run, question=ASKED_ID, warnings=asked.warnings)
        while watched.question.status == QuestionStatus.OPEN:
            heard = hearing.wait(POLL_SECONDS)
            for told in heard:
                if told.step not in watched.places:  # one has ended, or begun
                    yield from watched.read()
                place = watched.writing(told.step)
                if place is not None:
                    yield Token(step=place, text=told.text, thought=told.thought)
            if not heard:
                yield from watched.read()
                yield None


class _Watched:
    """A question as it was last read; places: its steps' places, by the ids of their rows."""

    def __init__(self, engine: Engine, row: int) -> None:
        # The question and its steps as they are at one moment: with the end of the one, no step's may be missing.
        self._engine = engine.execution_options(isolation_level="REPEATABLE READ")
        self._row = row
        self._told: set[int] = set()
        self.places: dict[int, int] = {}
        self._read()

    def read(self) -> Iterator[StepEnded]:
        """Reads what is recorded now, and yields the steps that have ended since."""
        self._read()
        for step in shown_steps(self.question):
            if step.state in ENDED_STEPS and step.sequence not in self._told:
                self._told.add(step.sequence)
                yield StepEnded(step=step)

    def writing(self, step_id: int) -> int | None:
        """The place of a step that is still writing, as far as is known; None where it has ended, or isn't known."""
        place = self.places.get(step_id)
        return None if place in self._told else place

    def _read(self) -> None:
        with self._engine.connect() as connection:
            [self.question] = read_traced(connection, [self._row])
            places = select(steps.c.id, steps.c.sequence).where(steps.c.question_id == self._row)
            self.places = {row.id: row.sequence for row in connection.execute(places)}
