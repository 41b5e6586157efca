"""Servers that echo in their errors what they were sent, in every form, as proxies and bad servers do."""

import json
import re
import socketserver
import threading
from base64 import b64decode
from http.server import BaseHTTPRequestHandler
from urllib.parse import quote

from tests.integration.served import QuietServer

PADDING = "x" * 450
"""Padding that puts the following text across the point where a message is cut off."""


class Echoing:
    """A search server and a model server in one; only requests that name a corpus work, others get `status`.

    broken: whether its answers aren't JSON. forms: the passwords and keys that it received, as echoed.
    """

    def __init__(self, manifest: dict[str, object]) -> None:
        self.status, self.broken = 401, False
        self.forms: set[str] = set()
        self._manifest = manifest
        self._server = QuietServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def port(self) -> int:
        return self._server.server_port

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reply(self, method: str, path: str, header: str) -> tuple[int, bytes]:
        if method == "GET" and path.startswith("/cotrail-"):
            index = {"mappings": {"_meta": {"cotrail": self._manifest}}, "aliases": {"cotrail-planted": {}}}
            return 200, json.dumps({"index": index}).encode()
        told = self._told(header)
        if self.broken:
            return self.status, f"<html>{PADDING}{told}</html>".encode()
        fault = {"type": "refused", "reason": told, "message": told}
        return self.status, json.dumps({"error": fault, "status": self.status}).encode()

    def _told(self, header: str) -> str:
        scheme, _, sent = header.partition(" ")
        said = {sent, quote(sent, safe="")}
        if scheme == "Basic":
            entry = b64decode(sent).decode()
            said |= {entry, entry.partition(":")[2], quote(entry.partition(":")[2], safe="")}
        self.forms |= said - {""}
        return " ".join(sorted(said))


class EchoingRedis(socketserver.ThreadingTCPServer):
    """A Redis that knows no command and echoes what it was sent, as old ones and proxies do with AUTH and HELLO."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Unknown)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self._thread.start()
        self.said = b""

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Unknown(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while sent := self.request.recv(65536):
            for command in re.split(rb"\*\d+\r\n", sent)[1:]:
                name, *arguments = [part for part in command.split(b"\r\n") if part and not part.startswith(b"$")]
                said = b" ".join(b"'%s'" % each for each in arguments)
                self.request.sendall(b"-ERR unknown command '%s', with args beginning with: %s\r\n" % (name, said))
                self.server.said += said  # type: ignore[attr-defined]


def _handler(server: Echoing) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body = server.reply(self.command, self.path, self.headers.get("Authorization", ""))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def do_PUT(self) -> None:
            self.answer()

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    return Handler
