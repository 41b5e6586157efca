"""The command line in a process that has imported it, and forks for each call: a call then costs no imports.

`Warmed(folder)` puts a `cotrail` into the folder, for a `PATH`; shells call it as they call the installed one.
"""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from textwrap import dedent

LENGTH = struct.Struct("!I")

FURTHER = (
    "alembic.command",
    "attr",
    "cotrail.client.client",
    "cotrail.workers.stack.stack",
    "rich.markdown",
    "rich.traceback",
    "scipy.stats",
    "sentence_transformers",
    "tantivy",
)
"""What commands import as they are carried out."""

CALLER = """\
    #!{python} -IS
    import json, os, socket, sys
    connection = socket.socket(socket.AF_UNIX)
    connection.connect({address!r})
    call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(connection, [len(call).to_bytes(4, "big")], [0, 1, 2])
    connection.sendall(call)
    sys.exit(connection.recv(1)[0])
"""


class Warmed:
    """The process and the command that calls it, which waits for `ready`; `close` ends it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        address = folder / "calls"
        command = folder / "cotrail"
        command.write_text(dedent(CALLER).format(python=sys.executable, address=str(address)))
        command.chmod(0o755)
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(address)], env=environment, stdout=subprocess.PIPE
        )

    def ready(self) -> None:
        """Waits until it takes calls."""
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate()


def serve(address: str) -> None:
    """Answers calls until it is ended; a call is carried out by a child of its own."""
    from cotrail.cli.lazy_group import COMMANDS, load
    from cotrail.configuration.settings import settings

    for entry in COMMANDS:
        import_module(f"cotrail.cli.commands.{entry.place.partition(':')[0]}")
        load(entry)
    for name in FURTHER:
        import_module(name)
    settings.cache_clear()  # each call has an environment of its own
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(16)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _answer(connection)
            connection.close()


def _answer(connection: socket.socket) -> None:
    """Carries one call out and sends its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(connection, LENGTH.size, 3)
    arguments, folder, environment = json.loads(_received(connection, LENGTH.unpack(head)[0]))
    child = os.fork()
    if child == 0:
        connection.close()
        _become(arguments, folder, environment, streams)
    for stream in streams:
        os.close(stream)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(bytes([code % 256]))
    os._exit(0)


def _received(connection: socket.socket, length: int) -> bytes:
    with connection.makefile("rb") as sent:
        return sent.read(length)


def _become(arguments: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> None:
    """Takes over where the call was made, and is the command from here on."""
    from cotrail.cli.main import main

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["cotrail", *arguments]
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    main()


if __name__ == "__main__":
    serve(sys.argv[1])
