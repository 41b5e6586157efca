"""What followers are told: what is recorded, how far a run is, that it has ended, and tokens as they are written."""

from collections.abc import Mapping

from cotrail.models.queries.events import Event as Event
from cotrail.models.queries.events import QuestionChanged, StepEnded


class Progressed(Event, frozen=True, kw_only=True, tag="progress"):
    """How far a run is: its state, its questions by status, the number of its steps that are done."""

    run: str
    state: str
    questions: Mapping[str, int]
    steps: int


class Token(Event, frozen=True, kw_only=True, tag="token"):
    """A piece of the text that a model is writing; step: the row of the step, whose end tells the whole text."""

    step: int
    text: str


class Ended(Event, frozen=True, kw_only=True, tag="end"):
    """The last event: nothing more will happen unless a person acts; state: of the run, or of the question followed."""

    state: str


LiveEvent = StepEnded | QuestionChanged | Progressed | Token | Ended


def is_last(event: Event) -> bool:
    """Whether nothing follows this one."""
    return isinstance(event, Ended)
