"""The task that tells how alike sentences and paragraphs are."""

from celery import shared_task

from cotrail.core.actions.embed import Embed
from cotrail.core.results import Embedded
from models.execution.claims import Claim
from models.records.dispatch import Dispatch
from tasks.routing import task_name
from tasks.station import Station
from tasks.step import perform


@shared_task(name=task_name("embed"))
def embed(step_id: int, epoch: int) -> None:
    """Executes an `Embed` step."""
    perform(Dispatch(step_id, epoch, "embed"), compare)


def compare(here: Station, claim: Claim) -> Embedded:
    """Has the run's embedder compare them, together with what other threads want compared."""
    action = claim.action
    assert isinstance(action, Embed)  # noqa: S101 - the queue holds nothing else
    return here.evidence.embedder(claim.run).do(action)
