"""Workers: who is there on all hosts, and what each is doing."""

from cotrail.services.access.actor import Scope
from cotrail.services.lists.queue_list import QueueList, list_queues
from cotrail.services.lists.worker_list import WorkerList, list_workers
from cotrail.services.operations.apps import App, current_app
from cotrail.services.operations.operation import operation
from cotrail.services.store import reading


@operation("GET", "/workers", Scope.READ)
def index(app: App = current_app) -> WorkerList:
    """List the workers of all hosts, and maintenance processes; of what they are doing, what the project's runs ask."""
    return list_workers(app())


@operation("GET", "/queues", Scope.READ)
def queues() -> QueueList:
    """List what waits in the queues, who carries it out and how fast, and what holds it back, of the project's runs."""
    with reading() as connection:
        return list_queues(connection)
