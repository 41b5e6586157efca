"""`cotrail serve`: the service over HTTP in this process."""

import os
from typing import Annotated, Any

import typer

from cotrail.cli.terminal.output import console
from cotrail.errors import UnavailableError

EVERY_INTERFACE = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened at

SHUTDOWN_SECONDS = 10
"""How long requests under way may take once the service is told to stop; streams end at once."""


def serve(
    *,
    host: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="Where it listens; 0.0.0.0 is every interface.", show_default="127.0.0.1"),
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=65535, help="The port there.", show_default="8420")
    ] = None,
    fd: Annotated[
        int | None,
        typer.Option(metavar="N", min=3, help="A socket that listens already, which this process was handed."),
    ] = None,
    processes: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="How many processes answer.")] = 1,
) -> None:
    """Run the service over HTTP in this process until it is stopped.

    Where COTRAIL_API_HOST and COTRAIL_API_PORT are set, these are the defaults.
    """
    from cotrail.configuration.settings import settings
    from cotrail.engines.optional_packages import check_package

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
        "http": "cotrail.api.patience:Patient",
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
