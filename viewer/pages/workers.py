"""Workers and queues: who works on what, how fast, and what waits for what."""

from cotrail.services.operations import workers
from cotrail.viewer.page import Shown, page

REFRESHED = 5
"""Seconds after which the page is read again."""


@page("/workers")
def index(*, all: bool = False) -> Shown:  # noqa: A002 - as it stands in the address
    """What is recorded of workers and queues; all: with the answers of all workers, which takes a few seconds."""
    present = workers.index() if all else None
    values = {"queues": workers.queues(), "present": present}
    return Shown(template="workers.html", section="workers", values=values, every=0 if all else REFRESHED)
