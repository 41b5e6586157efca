"""The task that writes the next sentence of a chain of thought."""

from celery import shared_task

from models.records.dispatch import Dispatch
from tasks.generating import generate
from tasks.routing import task_name
from tasks.step import perform


@shared_task(name=task_name("reason"))
def reason(step_id: int, epoch: int) -> None:
    """Executes a `Reason` step."""
    perform(Dispatch(step_id, epoch, "reason"), generate)
