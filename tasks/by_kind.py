"""The Celery tasks: one for each kind of action, named `cotrail.KIND`, made from the registry.

Every step is a task of its own, so that each search and each generation has its own message, lease and record.
"""

from typing import Any

from celery import shared_task
from celery.exceptions import Ignore
from celery.worker.request import Request

from cotrail.core.actions.registry import KINDS
from cotrail.core.results import Failure
from cotrail.models.records.dispatch import Dispatch
from cotrail.models.schema.states import AttemptOutcome
from cotrail.tasks import step
from cotrail.tasks.routing import task_name

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


def _register(kind: str) -> None:
    @shared_task(name=task_name(kind), Request=StepRequest)
    def execute(step_id: int, epoch: int) -> None:
        # By the module, so that tests can watch every step of a worker by replacing `step.perform`.
        became = step.perform(Dispatch(step_id, epoch, kind), step.carry_out)
        if became is not AttemptOutcome.FINISHED:
            raise NotFinished(became)


for _kind in KINDS:
    _register(_kind)
