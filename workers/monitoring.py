"""Running Flower in this process."""

import errno
import os
import socket
import sys

from cotrail.errors import InputError
from cotrail.workers.stack.web import Access, left_out, warn_of_left_out

ADDRESS_ERRORS = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES)
"""Why an address can't be listened on."""


def serve(address: str, access: Access, listener: socket.socket | None = None) -> None:
    """Serve pages on what the workers do until SIGTERM or SIGINT, behind user and password, for looking only.

    listener: the socket on which it listens, in place of that address and port.
    Nothing is read from the working directory, where a `tasks.py` or a `flowerconfig.py` may lie, and no variable of
    Flower's own, some of which open it to anyone. Raises InputError for an address that can't be listened on.
    """
    warn_of_left_out()
    for name in left_out():
        del os.environ[name]
    import flower.app
    from celery.bin.celery import celery

    from cotrail.workers.celery_app import app

    if listener is not None:
        listener.setblocking(False)  # as Tornado takes connections until there is none
        flower.app.bind_sockets = lambda *_, **__: [listener]

    celery.params[0].default = app
    try:
        sys.exit(celery.main(["flower", *options(address, access)], standalone_mode=False))
    except OSError as error:
        if error.errno not in ADDRESS_ERRORS and not isinstance(error, socket.gaierror):
            raise
        raise InputError(
            f"Flower can't listen on {address}, port {access.port} ({error.strerror}); choose with --address and --port"
        ) from error


def options(address: str, access: Access) -> list[str]:
    """The options of Flower, which no other process sees, as they aren't on this one's command line."""
    return [
        f"--address={address}",
        f"--port={access.port}",
        f"--basic-auth={access.credentials}",
        "--read-only=true",
        f"--conf={os.devnull}",
    ]
