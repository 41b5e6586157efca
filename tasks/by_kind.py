"""The Celery tasks: one for each kind of action, named `cotrail.KIND`, made from the registry.

Every step is a task of its own, so that each search and each generation has its own message, lease and record.
"""

from celery import shared_task

from cotrail.core.actions.registry import KINDS
from cotrail.models.records.dispatch import Dispatch
from cotrail.models.schema.states import AttemptOutcome
from cotrail.tasks import step
from cotrail.tasks.monitoring import NotFinished, StepRequest
from cotrail.tasks.routing import task_name


def _register(kind: str) -> None:
    @shared_task(name=task_name(kind), Request=StepRequest)
    def execute(step_id: int, epoch: int) -> None:
        # By the module, so that tests can watch every step of a worker by replacing `step.perform`.
        became = step.perform(Dispatch(step_id, epoch, kind), step.carry_out)
        if became is not AttemptOutcome.FINISHED:
            raise NotFinished(became)


for _kind in KINDS:
    _register(_kind)
