"""What Celery's monitors make of a task whose step has no result."""

from celery.events.state import State

from cotrail.core.results import Failure
from cotrail.models.schema.states import AttemptOutcome
from cotrail.tasks.step import NotFinished
from tests.cases import each_case

SECRET = "what a server said"


@each_case(
    ("became", "state"),
    [
        (Failure(type="PromptTooLong", message=SECRET), "FAILURE"),
        (AttemptOutcome.RETRIED, "RETRY"),
        (AttemptOutcome.BLOCKED, "BLOCKED"),
        (AttemptOutcome.UNAVAILABLE, "UNAVAILABLE"),
        (AttemptOutcome.RELEASED, "RELEASED"),
        (None, "UNCLAIMED"),
    ],
)
def test_each_has_a_state_and_none_is_a_success(became: Failure | AttemptOutcome | None, state: str) -> None:
    name, fields = NotFinished(became).event()
    monitor = State()
    for when, (type_, more) in enumerate([("task-received", {}), ("task-started", {}), (name, fields)]):
        times = {"timestamp": when, "local_received": when, "clock": when}
        monitor.event({"type": type_, "uuid": "1", "hostname": "w", **times, **more})
    task = monitor.tasks["1"]
    assert task.state == state
    assert task.succeeded is None
    assert SECRET not in str(fields)
