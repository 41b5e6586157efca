"""The task that tells whether a sentence follows from a paragraph."""

from celery import shared_task

from cotrail.core.actions.entail import Entail
from cotrail.core.results import Entailed
from models.execution.claims import Claim
from models.records.dispatch import Dispatch
from tasks.routing import task_name
from tasks.station import Station
from tasks.step import perform


@shared_task(name=task_name("entail"))
def entail(step_id: int, epoch: int) -> None:
    """Executes an `Entail` step."""
    perform(Dispatch(step_id, epoch, "entail"), judge)


def judge(here: Station, claim: Claim) -> Entailed:
    """Has the run's entailer judge it, together with what other threads want judged."""
    action = claim.action
    assert isinstance(action, Entail)  # noqa: S101 - the queue holds nothing else
    return here.evidence.entailer(claim.run).do(action)
