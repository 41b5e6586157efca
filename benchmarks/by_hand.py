"""A worker without Celery: claims, executes and commits steps in the benchmark's own process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, text

from benchmarks.servers import own_servers
from cotrail.core.actions.registry import KINDS
from cotrail.core.history import Outcome
from cotrail.core.system import Action
from cotrail.models.execution.admission import admit
from cotrail.models.execution.leases import Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.recovery import take_unsent
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.database import connect
from cotrail.models.schema.migrating import migrate
from cotrail.systems.registry import find_system
from cotrail.workers.stack.stack import Stack

LEASE_SECONDS = 600.0
AT_ONCE = 64
"""Steps claimed and committed together."""


@contextmanager
def own_store(**parameters: str) -> Iterator[Engine]:
    """An empty store in a temporary PostgreSQL with these server parameters; removed afterwards."""
    with own_servers() as settings:
        engine = connect(settings.database, by_index=True)
        if parameters:
            _set(engine, parameters)
            stack = Stack(settings)
            stack.down()
            stack.start_servers()
        migrate(settings.database)
        yield engine
        engine.dispose()


def _set(engine: Engine, parameters: dict[str, str]) -> None:
    """Set server parameters; they take effect at the next start."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for name, value in parameters.items():
            connection.execute(text(f"ALTER SYSTEM SET {name} = '{value}'"))
    engine.dispose()


def carry_out(engine: Engine, execute: Callable[[Action], Outcome]) -> int:
    """Execute all steps of the store until none is left; returns their number."""
    ledger = Ledger(engine, "by hand", LEASE_SECONDS, find_system)
    done = 0
    while waiting := _begun(engine):
        while waiting:
            now, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
            claims = [claim for claim in ledger.claim(now) if claim is not None]
            ended = [Completion(claim=claim, outcome=execute(claim.action), milliseconds=1.0) for claim in claims]
            waiting = [message for following in ledger.commit(ended) for message in following] + waiting
            done += len(ended)
    return done


def _begun(engine: Engine) -> list[Dispatch]:
    """First steps of the questions that may begin."""
    with engine.begin() as connection:
        return admit(connection) + [message for kind in KINDS for message in take_unsent(connection, kind, 1000)]
