"""The task that asks a knowledge source."""

from celery import shared_task

from cotrail.core.actions.lookup import Lookup
from cotrail.core.results import Retrieved
from models.execution.claims import Claim
from models.records.dispatch import Dispatch
from tasks.routing import task_name
from tasks.station import Station
from tasks.step import perform


@shared_task(name=task_name("lookup"))
def lookup(step_id: int, epoch: int) -> None:
    """Executes a `Lookup` step."""
    perform(Dispatch(step_id, epoch, "lookup"), ask)


def ask(here: Station, claim: Claim) -> Retrieved:
    """Asks the knowledge source that the step names."""
    action = claim.action
    assert isinstance(action, Lookup)  # noqa: S101 - the queue holds nothing else
    return Retrieved(hits=here.evidence.knowledge(claim.run, action.source).lookup(action.text, action.other))
