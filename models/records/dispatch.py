"""The message that has a worker carry out a step."""

from msgspec import Struct


class Dispatch(Struct, frozen=True):
    """A message that is due.

    step_id, epoch: all that the message holds; kind: names its queue; sequence: the step's place in its question, which
    gives the message its priority.
    """

    step_id: int
    epoch: int
    kind: str
    sequence: int = 0
