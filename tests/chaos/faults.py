"""The beginning and the mending of each kind of fault."""

import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import cycle

import psutil
import psycopg
from redis import RedisError

from tests.chaos.model import Mood
from tests.chaos.schedule import PROCESSES, Fault, Kind
from tests.chaos.world import World, signal_all
from tests.garbage import GARBAGE, QUEUES

Mend = Callable[[], None]


class NotNow(Exception):  # noqa: N818 - control flow: the fault strikes a little later
    """The fault's victim doesn't run, or doesn't answer."""


def begin(world: World, fault: Fault) -> Mend:
    """Makes the fault strike; returns the function that mends it. Raises NotNow."""
    return _BEGIN[fault.kind](world, fault)


def _kill(world: World, fault: Fault) -> Mend:
    running = _running(world, fault.target)
    return _bring_down(world, {fault.target: running[:1]}, signal.SIGKILL)


def _restart(world: World, fault: Fault) -> Mend:
    number = signal.SIGINT if fault.target == "postgres" else signal.SIGTERM  # PostgreSQL's SIGTERM waits for clients
    running = _running(world, fault.target)
    return _bring_down(world, {fault.target: running[:1]}, number)


def _cut(world: World, fault: Fault) -> Mend:
    _running(world, "postgres")
    return _bring_down(world, {name: world.processes(name) for name in PROCESSES}, signal.SIGKILL)


def _bring_down(world: World, processes: dict[str, list[psutil.Process]], number: signal.Signals) -> Mend:
    world.held.update(processes.keys())
    signal_all([process for each in processes.values() for process in each], number)
    return partial(world.held.subtract, list(processes))


def _stop(world: World, fault: Fault) -> Mend:
    running = _running(world, fault.target)
    signal_all(running, signal.SIGSTOP)
    return partial(signal_all, running, signal.SIGCONT)


def _flush(world: World, fault: Fault) -> Mend:
    try:
        with world.redis() as redis:
            redis.flushall()
    except RedisError as error:
        raise NotNow from error
    return _nothing


def _garbage(world: World, fault: Fault) -> Mend:
    try:
        with world.redis() as redis:
            for key, garbage in zip(cycle(QUEUES), GARBAGE.values(), strict=False):
                redis.lpush(key, garbage) if fault.target == "messages" else redis.set(key, garbage)
    except RedisError as error:
        raise NotNow from error
    return _nothing


def _drop(world: World, fault: Fault) -> Mend:
    try:
        world.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name <> 'chaos'")
    except psycopg.Error as error:
        raise NotNow from error
    return _nothing


def _fill(world: World, fault: Fault) -> Mend:
    _running(world, "postgres")
    world.disk.fill()
    if fault.target == "log":
        with suppress(psycopg.Error):
            world.query("SELECT pg_switch_wal()")
    return world.disk.empty


def _partition(world: World, fault: Fault) -> Mend:
    worker, _, lost = fault.target.partition(" ")
    _running(world, worker)
    world.wires.cut(worker, lost)
    return partial(world.wires.mend, worker, lost)


def _panic(world: World, fault: Fault) -> Mend:
    return world.panic(fault.target)


def _mood(world: World, fault: Fault) -> Mend:
    world.be(Mood(fault.target))
    return partial(world.be, Mood.OK)


def _clock(world: World, fault: Fault) -> Mend:
    world.clock(fault.target, fault.amount)
    return partial(world.clock, fault.target, 0)


def _nothing() -> None:
    """Does nothing: some faults need no mending."""


def _running(world: World, name: str) -> list[psutil.Process]:
    if running := world.processes(name):
        return running
    raise NotNow


_BEGIN: dict[Kind, Callable[[World, Fault], Mend]] = {
    Kind.KILL: _kill,
    Kind.STOP: _stop,
    Kind.RESTART: _restart,
    Kind.CUT: _cut,
    Kind.FLUSH: _flush,
    Kind.GARBAGE: _garbage,
    Kind.DROP: _drop,
    Kind.FILL: _fill,
    Kind.PARTITION: _partition,
    Kind.PANIC: _panic,
    Kind.MOOD: _mood,
    Kind.CLOCK: _clock,
}
