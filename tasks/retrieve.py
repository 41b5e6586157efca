"""The task that searches a corpus."""

from celery import shared_task

from cotrail.core.actions.retrieve import Retrieve, retrieved
from cotrail.core.results import Retrieved
from models.execution.claims import Claim
from models.records.dispatch import Dispatch
from tasks.routing import task_name
from tasks.station import Station
from tasks.step import perform


@shared_task(name=task_name("retrieve"))
def retrieve(step_id: int, epoch: int) -> None:
    """Executes a `Retrieve` step."""
    perform(Dispatch(step_id, epoch, "retrieve"), search)


def search(here: Station, claim: Claim) -> Retrieved:
    """Searches the run's corpus."""
    action = claim.action
    assert isinstance(action, Retrieve)  # noqa: S101 - the queue holds nothing else
    return retrieved(here.retriever(claim.run), action)
