"""The message that has a worker carry out a step."""

from msgspec import Struct

LONGEST_ID = 100
"""Characters of a question's id that a message shows."""


class Dispatch(Struct, frozen=True):
    """A message that is due.

    step_id, epoch: all that a worker reads of the message; kind: its kind; sequence: the step's place in its question,
    which gives the message its priority; served: whether the language model of its run is, on which its queue depends;
    asked: whether somebody waits for the answer, so that it goes ahead of all others;
    about: the step in words, for whoever watches the queues.
    """

    step_id: int
    epoch: int
    kind: str
    sequence: int = 0
    served: bool = False
    asked: bool = False
    about: str = ""


def described(
    step_id: int,
    epoch: int,
    kind: str,
    sequence: int,
    served: bool,  # noqa: FBT001 - rows come in this order
    asked: bool,  # noqa: FBT001
    run_id: str,
    question: str,
) -> Dispatch:
    """Return a step's message with what it is about: its run's id, its question's id, and its place there from 1.

    Texts stay in PostgreSQL. A question's id comes from a file, so it is written as Python writes strings, and cut.
    """
    about = f"run {run_id}, question {question[:LONGEST_ID]!r}, step {sequence + 1}"
    return Dispatch(step_id, epoch, kind, sequence, served, asked, about)
