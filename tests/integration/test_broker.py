"""What a Redis that answers may still do with messages: refuse them, or lose them."""

from collections.abc import Iterator

import pytest
from redis import Redis

from cotrail.configuration.settings import Settings
from cotrail.tasks.broker_health import broker_problem, policy_problem

PREFIX = "cotrail:"


@pytest.fixture
def redis(servers: Settings) -> Iterator[Redis]:
    """The test process's, with its settings as they were at the end."""
    path = servers.broker.removeprefix("redis+socket://")
    client = Redis(unix_socket_path=path)
    former = {name: str(client.config_get(name)[name]) for name in ("maxmemory", "maxmemory-policy")}
    yield client
    for name, value in former.items():
        client.config_set(name, value)
    client.config_resetstat()
    client.close()


def test_a_broker_that_takes_messages_and_keeps_them_has_no_problem(servers: Settings, redis: Redis) -> None:
    assert broker_problem(servers.broker, PREFIX) is None
    assert policy_problem(servers.broker) is None
    assert 0 < redis.pttl(f"{PREFIX}check") <= 1000


def test_a_full_broker_that_refuses_messages_has_one(servers: Settings, redis: Redis) -> None:
    redis.config_set("maxmemory", 1)
    assert "maxmemory" in (broker_problem(servers.broker, PREFIX) or "")


def test_a_broker_that_evicts_has_one(servers: Settings, redis: Redis) -> None:
    redis.config_set("maxmemory-policy", "allkeys-lru")
    assert broker_problem(servers.broker, PREFIX) is None
    said = "set its maxmemory-policy, allkeys-lru, to noeviction"
    assert said in (policy_problem(servers.broker) or "")
    redis.set("a queue of others", bytes(100_000))
    redis.config_set("maxmemory", int(redis.info("memory")["used_memory"]) + 20_000)
    for number in range(64):
        redis.set(f"more {number}", bytes(10_000), ex=60)
    problem = broker_problem(servers.broker, PREFIX) or ""
    assert "it has evicted" in problem
    assert said in problem
