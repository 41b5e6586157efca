"""`cotrail up`, `cotrail down` and `cotrail stack`: the local stack."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console

from cli.arguments import Json
from cli.columns import Column, print_rows
from cli.local_stack import local_stack, startable_stack
from cli.output import console, print_json

if TYPE_CHECKING:
    from workers.stack.flower import Access
    from workers.stack.stack import Status


def up(
    *,
    flower: Annotated[bool, typer.Option("--flower", help="Start Flower too, and print how to get to it.")] = False,
    json: Json = False,
) -> None:
    """Start PostgreSQL, Redis and the workers on this machine, those that aren't running."""
    stack = startable_stack()
    access = stack.up(flower=flower)
    _show(stack.status(), json=json, access=access)


def down(*, json: Json = False) -> None:
    """Stop everything that `cotrail up` started. Runs continue after the next `cotrail up`."""
    stack = local_stack()
    stopped = stack.down()
    if json:
        _show(stack.status(), json=True)
    else:
        console().print("Stopped." if stopped else "Nothing was running.")


def stack(*, json: Json = False) -> None:
    """Show the processes of the local stack."""
    _show(local_stack().status(), json=json)


def _show(statuses: "tuple[Status, ...]", *, json: bool, access: "Access | None" = None) -> None:
    if json:
        flower = None if access is None else {"url": access.url, "user": access.user, "password": access.password}
        print_json(msgspec.to_builtins({"services": statuses, "flower": flower}, enc_hook=str))
        return
    screen = console()
    _print_statuses(screen, statuses)
    for status in statuses:
        if status.problem is not None:
            advice = f"end process {status.pid}, then `cotrail up` starts another"
            screen.print(f"{status.name} doesn't work: {status.problem}; {advice}", soft_wrap=True)
    if access is not None:
        screen.print(f"Flower: {access.url} user {access.user}, password {access.password}", soft_wrap=True)


def _print_statuses(screen: Console, statuses: "tuple[Status, ...]") -> None:
    columns = [Column(title=title) for title in ("name", "state", "pid", "uptime", "memory", "log")]
    print_rows(screen, columns, [_row(status) for status in statuses])


def _row(status: "Status") -> list[str]:
    return [
        status.name,
        str(status.state),
        "" if status.pid is None else str(status.pid),
        "" if status.uptime is None else str(timedelta(seconds=int(status.uptime))),
        "" if status.memory is None else f"{status.memory / 2**20:.0f} MiB",
        "" if status.log is None else str(status.log),
    ]
