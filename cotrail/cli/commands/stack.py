"""The processes: `cotrail up`, `down` and `stack` for all of them, `worker`, `serve` and `flower` for one."""

import errno
import os
import socket
import sys
from collections.abc import Iterator
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from cotrail.cli.request_options import Json, argument, option
from cotrail.cli.terminal.diagnosis import local_stack, start, startable_stack
from cotrail.cli.terminal.output import console, in_json, print_json, print_rows, titled
from cotrail.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from cotrail.workers.stack.status import Status
    from cotrail.workers.stack.web import Access, Address


BROKEN_STACK = 3
"""The exit code of a stack of which something is dead or doesn't work."""

ADDRESS_ERRORS = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES)
"""Why an address can't be listened on."""


def up(*, flower: Annotated[bool, option("up.flower")] = False, json: Json = False) -> None:
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
    columns = titled("name", "state", "pid", "uptime", "memory", "restarts", "last end")
    print_rows(screen, columns, [_row(status) for status in statuses])
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
            how = f": {status.ended}" if status.ended else ""
            yield f"{status.name} is dead{how}{_until(status)}"
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


def _until(status: "Status") -> str:
    if status.restart_seconds is None:
        return ""
    when = f"in {ceil(status.restart_seconds)} s" if status.restart_seconds else "as soon as what it needs is there"
    return f"; it is started again {when}"


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


def worker(
    role: Annotated[Literal["generation", "retrieval", "evidence", "maintenance"], argument("worker.role")],
    *,
    slots: Annotated[int | None, option("worker.slots")] = None,
    name: Annotated[str | None, option("worker.name")] = None,
    events: Annotated[bool, option("worker.events")] = False,
) -> None:
    """Run a worker in this process until it is stopped, on this or any other host.

    COTRAIL_DATABASE_URL and COTRAIL_BROKER_URL, or COTRAIL_HOME on the host of the local stack, say whose work it does.
    """
    if role == "maintenance":
        if slots or name or events:
            raise typer.BadParameter("--slots, --name and --events are for workers that carry out steps")
        from cotrail.workers import maintenance

        maintenance.main()
    else:
        from cotrail.workers.celery_app import tune

        tune()
        from cotrail.workers.app import serve

        serve(role, slots=slots, name=name, events=events)


REDIS_UNAVAILABLE = 3
"""The exit code where Redis doesn't answer, so that not all were found."""


def workers(*, json: Json = False) -> None:
    """List the workers of all hosts, and what each is doing; maintenance processes too.

    Workers are asked over Redis, and what they hold is read from the database. One that holds steps and doesn't answer
    is silent: frozen, cut off, or ended a moment ago. Exits with 3 where Redis doesn't answer: idle ones aren't found.
    """
    from cotrail.cli.terminal.diagnosis import print_workers
    from cotrail.services.runs import workers as operations
    from cotrail.workers.celery_app import app

    listing = operations.show_workers(lambda: app)
    if not in_json(listing, json=json):
        print_workers(listing)
    if listing.unasked is not None:
        raise typer.Exit(REDIS_UNAVAILABLE)


def flower(
    *,
    address: Annotated[str, option("flower.address")] = "127.0.0.1",
    port: Annotated[int, option("flower.port")] = 5555,
    fd: Annotated[int | None, option("flower.fd")] = None,
) -> None:
    """Run Flower in this process until it is stopped: a web page on what Celery's workers do.

    It asks for the user and the password in COTRAIL_FLOWER_USER and COTRAIL_FLOWER_PASSWORD; where there is none, it
    prints one. It only shows: nothing can be changed there. Workers tell it of tasks with --events.
    """
    from cotrail.cli.terminal.output import console
    from cotrail.common.optional_packages import check_package
    from cotrail.configuration.settings import settings
    from cotrail.workers.stack.web import PASSWORD, access_on, handed, port_of

    check_package("flower", "monitoring")
    settings()  # what can't be used is refused before anything is said
    listener = None if fd is None else handed(fd)
    access = access_on(port if listener is None else port_of(listener))
    password = "" if os.environ.get(PASSWORD) else f", password {access.password}"
    console(stderr=True).print(f"Flower: http://{address}:{access.port}/ user {access.user}{password}", soft_wrap=True)
    _serve_flower(address, access, listener)


def _serve_flower(address: str, access: "Access", listener: socket.socket | None) -> None:
    """Serve pages on what the workers do until SIGTERM or SIGINT, behind user and password, for looking only.

    listener: the socket on which it listens, in place of that address and port.
    Nothing is read from the working directory, where a `tasks.py` or a `flowerconfig.py` may lie, and no variable of
    Flower's own, some of which open it to anyone. Raises InputError for an address that can't be listened on.
    """
    from cotrail.workers.stack.web import left_out, warn_of_left_out

    warn_of_left_out()
    for name in left_out():
        del os.environ[name]
    import flower.app
    from celery.bin.celery import celery

    from cotrail.workers.celery_app import app

    if listener is not None:
        listener.setblocking(False)  # as Tornado takes connections until there is none
        flower.app.bind_sockets = lambda *_, **__: [listener]
    # Here no other process sees them, as they aren't on this one's command line.
    options = (
        f"--address={address}",
        f"--port={access.port}",
        f"--basic-auth={access.credentials}",
        "--read-only=true",
        f"--conf={os.devnull}",
    )
    celery.params[0].default = app
    try:
        sys.exit(celery.main(["flower", *options], standalone_mode=False))
    except OSError as error:
        if error.errno not in ADDRESS_ERRORS and not isinstance(error, socket.gaierror):
            raise
        raise InputError(
            f"Flower can't listen on {address}, port {access.port} ({error.strerror}); choose with --address and --port"
        ) from error


EVERY_INTERFACE = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened at

SHUTDOWN_SECONDS = 10
"""How long requests under way may take once the service is asked to stop; streams end at once."""


def serve(
    *,
    host: Annotated[str | None, option("serve.host")] = None,
    port: Annotated[int | None, option("serve.port")] = None,
    fd: Annotated[int | None, option("serve.fd")] = None,
    processes: Annotated[int, option("serve.processes")] = 1,
) -> None:
    """Run the service over HTTP in this process until it is stopped.

    Where COTRAIL_API_HOST and COTRAIL_API_PORT are set, these are the defaults.
    """
    from cotrail.common.optional_packages import check_package
    from cotrail.configuration.settings import settings

    check_package("uvicorn", "api")
    import uvicorn

    from cotrail.services.access.sign_in import configured
    from cotrail.workers.stack.web import handed, port_of

    if host is not None:  # who is at the machine itself needs no token only where nobody else reaches the service
        os.environ["COTRAIL_API_HOST"] = host
        settings.cache_clear()
    own = settings()  # what can't be used is refused before anything is said
    configured()
    options: dict[str, Any] = {
        "app": "cotrail.api.serving:application",
        "factory": True,
        "http": "cotrail.api.probes:Patient",
        "host": own.api_host,
        "port": own.api_port if port is None else port,
        "workers": processes,
        "server_header": False,
        # Only a proxy on this host or on COTRAIL_API_PROXIES may say for whom it asks.
        "forwarded_allow_ips": own.api_proxies,
        "timeout_graceful_shutdown": SHUTDOWN_SECONDS,
    }
    if fd is None:
        _print_address(own.api_host, options["port"])
        uvicorn.run(**options)
        return
    listener = handed(fd)
    _print_address(own.api_host, port_of(listener))
    server = uvicorn.Server(uvicorn.Config(**options))
    server.run(sockets=[listener])
    if not server.started:
        raise UnavailableError("the service couldn't start; its log says why")


def _print_address(host: str, port: int) -> None:
    """Say where the viewer is, unless the system chooses the port."""
    if port:
        name = "127.0.0.1" if host in EVERY_INTERFACE else f"[{host}]" if ":" in host else host
        console(stderr=True).print(f"Viewer: http://{name}:{port}/", soft_wrap=True)
