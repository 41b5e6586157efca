"""What the stack's web servers have in common: a free port on loopback, and a page that says that they work."""

import http.client
import socket

from cotrail.workers.health import Problem

HOST = "127.0.0.1"
PATIENCE_SECONDS = 5.0
"""How long a page may take."""


def free_port(*wanted: int) -> int:
    """Return the first of these ports that is free, or any free one."""
    for port in (*wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise OSError("no port is free")


def answers(port: int, path: str) -> bool:
    """Return whether the server on that port has the page."""
    connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()


def problem(port: int, path: str) -> Problem | None:
    """Return what keeps it from its work."""
    return None if answers(port, path) else Problem(said="it doesn't answer", restart=True)
