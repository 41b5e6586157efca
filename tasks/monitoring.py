"""What Celery's monitors, such as Flower, are told of a task that didn't carry out its step."""

from typing import Any

from celery.exceptions import Ignore
from celery.worker.request import Request

from cotrail.core.results import Failure
from cotrail.models.schema.states import AttemptOutcome

UNCLAIMED = "unclaimed"
"""The step is another worker's, or ended already: its message came twice, or late."""

_EVENTS = {AttemptOutcome.RETRIED: "retried", None: UNCLAIMED}
"""Events whose names aren't the outcome's. Of names that Celery doesn't know, monitors make states: BLOCKED."""


class NotFinished(Ignore):  # type: ignore[misc, unused-ignore]
    """Raised by a task whose step has no result: Celery takes no return for anything but a success.

    became: the failure that the step ended with, or how this execution ended; None where the step couldn't be claimed.
    """

    def __init__(self, became: Failure | AttemptOutcome | None) -> None:
        super().__init__(became)
        self.became = became

    def event(self) -> tuple[str, dict[str, str]]:
        """Return the event and its fields. Messages stay in PostgreSQL, where `cotrail show` finds them."""
        if isinstance(self.became, Failure):
            return "task-failed", {"exception": self.became.type, "traceback": ""}
        name = f"task-{_EVENTS.get(self.became, self.became)}"
        return name, {"exception": "", "traceback": ""} if name == "task-retried" else {}


class StepRequest(Request):  # type: ignore[misc, unused-ignore]
    """A message as a worker holds it, which says at its end what became of its step, if anybody listens."""

    def on_failure(self, exc_info: Any, *arguments: Any, **named: Any) -> Any:
        """Tell the monitors, then do what Celery does."""
        raised = getattr(exc_info.exception, "exc", exc_info.exception)  # billiard wraps it together with its traceback
        if isinstance(raised, NotFinished):
            event, fields = raised.event()
            self.send_event(event, **fields)
        return super().on_failure(exc_info, *arguments, **named)
