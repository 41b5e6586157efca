"""Whatever lies in the queues: workers and maintenance go on, and so do runs."""

import random
from collections.abc import Iterator
from functools import partial
from itertools import product

import pytest
from redis import Redis
from sqlalchemy import Engine

from cotrail.models.commands.control import cancel
from cotrail.models.schema.database import connect
from cotrail.workers.transport import UNREADABLE_SUFFIX
from tests.conftest import Eventually
from tests.faults.stacked import finished_steps, open_questions
from tests.faults.working import Workplace, ask, outcomes, statuses
from tests.garbage import BROADCASTS, GARBAGE, QUEUES

pytestmark = pytest.mark.usefixtures("the_same_processes")

SERVED = [key for key in QUEUES if key.split(":")[1].startswith(("reason", "read", "retrieve"))]


@pytest.fixture
def engine(place: Workplace) -> Iterator[Engine]:
    engine = connect(place.settings.database)
    yield engine
    engine.dispose()


@pytest.fixture
def redis(place: Workplace) -> Iterator[Redis]:
    with Redis(unix_socket_path=str(place.settings.socket_path / "redis.sock")) as client:
        yield client


def test_garbage_in_every_queue_is_skipped(
    place: Workplace, engine: Engine, redis: Redis, eventually: Eventually
) -> None:
    ask(engine, "spoiled", 60)
    ask(engine, "cancelled", 60)
    eventually(lambda: finished_steps(engine, "spoiled") > 20, "the run is under way")
    chance = random.Random(1)
    for key, garbage in product(QUEUES, GARBAGE.values()):
        chance.choice([redis.lpush, redis.rpush])(key, garbage)
    cancel(engine, "cancelled")
    eventually(lambda: "cancelled is cancelled: " in place.log("maintenance"), "maintenance has withdrawn messages")
    eventually(lambda: open_questions(engine, "spoiled") == 0, "the run is finished", 120)
    assert statuses(engine, "spoiled") == {"finished"}
    assert outcomes(engine, "spoiled").keys() == {"finished"}
    eventually(lambda: sum(map(redis.llen, SERVED)) == 0, "the worker has skipped all of it")
    log = place.log("worker")
    assert 10 < log.count("is skipped (") < 30
    assert "Traceback" not in log


def test_garbage_of_remote_control_is_skipped(
    place: Workplace, engine: Engine, redis: Redis, eventually: Eventually
) -> None:
    ask(engine, "told", 30)
    for name, garbage in BROADCASTS.items():
        # Behind some garbage a worker connects anew, and is away for a moment.
        eventually(partial(redis.publish, "cotrail:/0.celery.pidbox", garbage), f"a worker gets {name}")
    eventually(lambda: open_questions(engine, "told") == 0, "the run is finished")
    assert statuses(engine, "told") == {"finished"}


def test_keys_of_another_type_are_moved_out_of_the_way(
    place: Workplace, engine: Engine, redis: Redis, eventually: Eventually
) -> None:
    ask(engine, "moved", 60)
    eventually(lambda: finished_steps(engine, "moved") > 20, "the run is under way")
    for key in QUEUES:
        redis.set(key, "no list")
    eventually(lambda: open_questions(engine, "moved") == 0, "the run is finished", 120)
    assert statuses(engine, "moved") == {"finished"}
    assert redis.get(f"cotrail:reason{UNREADABLE_SUFFIX}") == b"no list"
    redis.delete(*redis.scan_iter(f"cotrail:*{UNREADABLE_SUFFIX}"))
