"""The task that writes an answer from paragraphs."""

from celery import shared_task

from models.records.dispatch import Dispatch
from tasks.generating import generate
from tasks.routing import task_name
from tasks.step import perform


@shared_task(name=task_name("read"))
def read(step_id: int, epoch: int) -> None:
    """Executes a `Read` step."""
    perform(Dispatch(step_id, epoch, "read"), generate)
