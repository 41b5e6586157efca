"""`cotrail up`, `cotrail down` and `cotrail stack`: the local stack."""

from collections.abc import Iterator
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console

from cotrail.cli.arguments import Json
from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.cli.terminal.local_stack import local_stack, start, startable_stack
from cotrail.cli.terminal.output import console, print_json

if TYPE_CHECKING:
    from cotrail.workers.stack.status import Status
    from cotrail.workers.stack.web import Access, Address

BROKEN_STACK = 3
"""The exit code of a stack of which something is dead or doesn't work."""


def up(
    *,
    flower: Annotated[bool, typer.Option("--flower", help="Start Flower too, and print how to get to it.")] = False,
    json: Json = False,
) -> None:
    """Start PostgreSQL, Redis, the workers and the service on this machine: what isn't running.

    What dies is started again until `cotrail down`.
    """
    stack = startable_stack()
    access = start(stack, console(stderr=True), flower=flower)
    statuses = stack.status()
    stack.check_started()
    _show(statuses, json=json, access=access, service=stack.address)


def down(*, json: Json = False) -> None:
    """Stop everything that `cotrail up` started. Runs continue after the next `cotrail up`."""
    stack = local_stack()
    stopped = stack.down()
    if json:
        _show(stack.status(), json=True)
    else:
        console().print("Stopped." if stopped else "Nothing was running.")


def stack(*, json: Json = False) -> None:
    """Show the processes of the local stack.

    Exits with 3 while one of them is dead, starting or doesn't work.
    """
    statuses = local_stack().status()
    _show(statuses, json=json)
    if not all(status.works for status in statuses):
        raise typer.Exit(BROKEN_STACK)


def _show(
    statuses: "tuple[Status, ...]", *, json: bool, access: "Access | None" = None, service: "Address | None" = None
) -> None:
    if json:
        flower = None if access is None else {"url": access.url, "user": access.user, "password": access.password}
        api = None if service is None else service.url
        print_json(msgspec.to_builtins({"services": statuses, "api": api, "flower": flower}, enc_hook=str))
        return
    screen = console()
    _print_statuses(screen, statuses)
    if log := next((status.log for status in statuses if status.log is not None), None):
        screen.print(f"Logs: {log.with_name('NAME.log')}", soft_wrap=True)
    for line in _troubles(statuses):
        screen.print(line, soft_wrap=True)
    if service is not None:
        screen.print(f"Service: {service.url}, with the viewer: `cotrail view` opens it", soft_wrap=True)
    if access is not None:
        screen.print(f"Flower: {access.url} user {access.user}, password {access.password}", soft_wrap=True)


def _troubles(statuses: "tuple[Status, ...]") -> Iterator[str]:
    """What is wrong with which services, and what brings them back."""
    from cotrail.workers.stack.status import SUPERVISORS, State

    supervised = any(status.name in SUPERVISORS and status.pid is not None for status in statuses)
    for status in statuses:
        if status.problem is not None:
            yield f"{status.name} doesn't work: {status.problem}{_then(status, supervised=supervised)}"
        elif status.state is State.DIED:
            yield f"{status.name} is dead{_how(status)}{_until(status)}"
    if not supervised and any(status.state is State.DIED for status in statuses):
        yield "`cotrail up` brings back what is dead."


def _then(status: "Status", *, supervised: bool) -> str:
    """What ends a problem that another process in its place may not have."""
    from cotrail.workers.stack.supervisor import PATIENCE_SECONDS

    if not status.frozen:
        return ""
    if supervised:
        return f"; once that has lasted for {PATIENCE_SECONDS:.0f} s, it is ended and started again"
    return f"; `kill -9 {status.pid}`, then `cotrail up` starts another"


def _how(status: "Status") -> str:
    return f": {status.ended}" if status.ended else ""


def _until(status: "Status") -> str:
    if status.restart_seconds is None:
        return ""
    when = f"in {ceil(status.restart_seconds)} s" if status.restart_seconds else "as soon as what it needs is there"
    return f"; it is started again {when}"


def _print_statuses(screen: Console, statuses: "tuple[Status, ...]") -> None:
    columns = [Column(title=title) for title in ("name", "state", "pid", "uptime", "memory", "restarts", "last end")]
    print_rows(screen, columns, [_row(status) for status in statuses])


def _row(status: "Status") -> list[str]:
    return [
        status.name,
        str(status.state),
        "" if status.pid is None else str(status.pid),
        "" if status.uptime is None else str(timedelta(seconds=int(status.uptime))),
        "" if status.memory is None else f"{status.memory / 2**20:.0f} MiB",
        str(status.restarts or ""),
        status.ended or "",
    ]
