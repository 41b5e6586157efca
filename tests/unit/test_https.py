"""What all HTTP clients have in common: trusted authorities, and proxies."""

import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("httpx2", reason="httpx2 isn't installed")

from cotrail.common.server_addresses import AUTHORITIES, PROXIES, http_options, trusted_authorities
from cotrail.errors import InputError


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (*AUTHORITIES, *PROXIES, "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)


def test_they_are_read_once_and_servers_have_to_be_vouched_for() -> None:
    authorities = trusted_authorities()
    assert trusted_authorities() is authorities
    assert authorities.verify_mode == ssl.CERT_REQUIRED
    assert authorities.check_hostname


@pytest.mark.parametrize("variable", AUTHORITIES)
def test_a_place_that_a_variable_names_is_read_instead(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import certifi

    usual = trusted_authorities()
    named = Path(certifi.where()) if variable == "SSL_CERT_FILE" else tmp_path
    monkeypatch.setenv(variable, str(named))
    assert trusted_authorities() is not usual
    assert bool(trusted_authorities().get_ca_certs()) == (variable == "SSL_CERT_FILE")


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_that_cannot_be_read_is_named_with_its_variable(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content:
        (tmp_path / "authorities.pem").write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authorities.pem"))
    with pytest.raises(InputError, match=r"authorities of SSL_CERT_FILE=.*authorities\.pem can't be read"):
        trusted_authorities()


def refusing_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def answering() -> Iterator[str]:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY", "http_proxy"])
def test_no_proxy_leads_to_this_machine_itself(variable: str, answering: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx2

    monkeypatch.setenv(variable, f"http://127.0.0.1:{refusing_port()}")
    with httpx2.Client(**http_options()) as client:
        assert client.get(answering).status_code == 204
        with pytest.raises(httpx2.ConnectError):
            client.get("http://elsewhere.example")


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "all_proxy"])
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("socks5://proxy:1080", "names a SOCKS proxy, which needs the package socksio"),
        ("ftp://proxy", "names no proxy"),
        ("proxy:port", "names no proxy"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_one_line_that_names_its_variable(
    variable: str, address: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, address)
    with pytest.raises(InputError, match=said) as refused:
        http_options()
    assert f"the environment variable {variable} " in str(refused.value)
    assert "\n" not in str(refused.value)
