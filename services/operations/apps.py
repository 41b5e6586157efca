"""The Celery app as a parameter of operations: it stays in the process that carries them out."""

from collections.abc import Callable
from typing import Annotated, Any

from cotrail.services.operations.operation import HERE

App = Annotated[Callable[[], Any], HERE]
"""Makes the Celery app, by which workers are asked."""


def current_app() -> Any:
    """The Celery app of this process (`cotrail.workers.celery_app`)."""
    import celery

    return celery.current_app
