"""Whose a connection over loopback is: other accounts of the machine need a token, and the kernel isn't misled."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cotrail.api.origins import is_owners, owner
from cotrail.configuration.settings import settings
from tests.cases import each_case
from tests.integration.asked_service import write_home
from tests.integration.conftest import Cotrail
from tests.integration.served_here import serving

NOBODY = 65_534

ASKING = """
import encodings.idna, http.client, json, os, sys
os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
answers = {}
for path in json.loads(sys.argv[4]):
    connection = http.client.HTTPConnection(sys.argv[2], int(sys.argv[3]))
    connection.request("GET", path)
    answer = connection.getresponse()
    answers[path] = (answer.status, answer.read().decode())
print(json.dumps(answers))
"""
"""Asks as another account, which may read no packages: what it needs is imported before."""


@each_case(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_kernel_says_whose_a_connection_is(family: socket.AddressFamily, host: str) -> None:
    with socket.create_server((host, 0), family=family) as listener:
        where = listener.getsockname()[:2]
        own = socket.create_connection(where)
        peer = own.getsockname()[:2]
        with own, listener.accept()[0] as accepted:
            assert owner(peer, where) == os.geteuid()
            assert is_owners(peer, where)
            own.shutdown(socket.SHUT_WR)
            assert owner(peer, where) == os.geteuid(), "it said all that it asks, and waits for the answer"
            assert owner(peer, (where[0], where[1] + 1)) is None
            assert accepted.recv(1) == b""
            own.close()
            assert owner(peer, where) is None, "the kernel would name root for a socket that nobody has"
            assert not is_owners(peer, where)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as another account")
def test_another_account_of_the_machine_needs_a_token(
    tmp_path: Path, cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    write_home(tmp_path / "home")
    # The service has another account than root, which may do everything anyway.
    monkeypatch.setattr("os.geteuid", lambda: NOBODY - 1)
    with serving() as address:
        host, port = address.removeprefix("http://").split(":")
        paths = ("/v1/runs", "/v1/tokens", "/v1/projects", "/", "/v1/openapi/openapi.json")

        def asked_by(account: int) -> dict[str, tuple[int, str]]:
            command = [sys.executable, "-c", ASKING, str(account), host, port, json.dumps(paths)]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, cwd="/")
            return {path: tuple(answer) for path, answer in json.loads(done.stdout).items()}

        others, its_own = asked_by(NOBODY), asked_by(NOBODY - 1)
    assert [status for status, _ in others.values()] == [401, 401, 401, 401, 200]
    assert "only the account that runs the service needs none" in others["/v1/runs"][1]
    assert [status for status, _ in its_own.values()] == [200] * len(paths)
