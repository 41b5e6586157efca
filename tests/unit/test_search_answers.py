"""What a search server may answer: as much as is sensible, and nothing that ends a process."""

import base64
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import msgspec
import pytest

from cotrail.engines.retrieval.elasticsearch import client
from cotrail.engines.retrieval.elasticsearch.client import ElasticsearchClient, FaultyError
from cotrail.engines.retrieval.search_server import SearchServer
from cotrail.errors import InputError, UnavailableError

MOST = 2**20

Write = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(write: Write, status: Callable[[], int] = lambda: 200) -> Iterator[str]:
    """The host and port of a server that answers every request so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status())
            write(self)

        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def answering(write: Write, status: Callable[[], int] = lambda: 200) -> Iterator[ElasticsearchClient]:
    """A client of such a server."""
    with serving(write, status) as place:
        yield ElasticsearchClient(SearchServer(urls=(f"http://{place}",)))


def whole(content: bytes) -> Write:
    """The content, its length told before."""

    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return write


def endless(handler: BaseHTTPRequestHandler) -> None:
    """More and more, until nobody reads it."""
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b" " * 65_536)
    except OSError:
        return


@pytest.fixture(autouse=True)
def _bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER_BYTES", MOST)


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (whole(b'"' + b"x" * MOST + b'"'), "more than 1 MiB"),
        (endless, "more than 1 MiB"),
        (whole(b"[" * 100_000), "answers as no Elasticsearch"),
        (whole(b'"\xff"'), "answers as no Elasticsearch"),
        (whole(b'"\\ud800"'), "answers as no Elasticsearch"),
        (whole(b"9" * 5_000), "answers as no Elasticsearch"),
    ],
)
def test_an_answer_that_is_too_large_or_no_json_is_refused(write: Write, said: str) -> None:
    with answering(write) as asked, pytest.raises(FaultyError, match=said):
        asked.ask(lambda api: api.info())


def test_an_answer_may_be_as_large_as_is_said() -> None:
    content = b'"' + b"x" * (MOST - 2) + b'"'
    with answering(whole(content)) as asked:
        assert asked.ask(lambda api: api.info(), str) == content.decode()[1:-1]
        assert asked.ask(lambda api: api.info(), str) == content.decode()[1:-1]


def test_a_server_may_be_another_product_and_warn_of_what_it_will_drop() -> None:
    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.send_header("Warning", '299 OpenSearch-3.4.0 "a thing is deprecated"')
        handler.send_header("Content-Type", "application/json; charset=UTF-8")
        whole(b"{}")(handler)

    with answering(write) as asked:
        assert asked.ask(lambda api: api.info()) == {}


@pytest.mark.parametrize("type_", ["text/html", "application/problem+json", "application/json"])
def test_a_page_is_no_answer_whatever_it_says_it_is(type_: str) -> None:
    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.send_header("Content-Type", type_)
        whole(b"<html>welcome</html>")(handler)

    with answering(write) as asked, pytest.raises(FaultyError, match="answers as no Elasticsearch"):
        asked.ask(lambda api: api.info())


def test_an_outage_is_raised_and_the_searches_after_it_log_nothing(caplog: pytest.LogCaptureFixture) -> None:
    away = iter([503] * 5)

    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.send_header("Content-Type", "application/json")
        whole(b'{"count": 1}')(handler)

    caplog.set_level(logging.INFO)
    with answering(write, lambda: next(away, 200)) as client:
        for _ in range(5):
            with pytest.raises(UnavailableError, match="503"):
                client.ask(lambda api: api.info(), attempts=1)
        for _ in range(5):
            client.ask(lambda api: api.info())
    assert [record.message for record in caplog.records if record.name.startswith("elastic")] == []


def test_nodes_that_a_server_names_are_asked_too_but_for_those_that_only_manage() -> None:
    asked: list[str] = []

    def node(name: str) -> Write:
        def write(handler: BaseHTTPRequestHandler) -> None:
            handler.send_header("Content-Type", "application/json")
            if "/_nodes/" in handler.path:
                whole(msgspec.json.encode({"nodes": nodes}))(handler)
            else:
                asked.append(name)
                whole(b"{}")(handler)

        return write

    with serving(node("first")) as first, serving(node("second")) as second:
        nodes = {
            "1": {"roles": ["data"], "http": {"publish_address": first}},
            "2": {"roles": [], "http": {"publish_address": second}},
            "3": {"roles": ["cluster_manager"], "http": {"publish_address": "127.0.0.1:1"}},
        }
        alone, sniffing = (
            ElasticsearchClient(SearchServer(urls=(f"http://{first}",), sniff=sniff)) for sniff in (False, True)
        )
        for client in (alone, sniffing):
            for _ in range(4):
                client.ask(lambda api: api.info())
    assert asked[:4] == ["first"] * 4
    assert set(asked[4:]) == {"first", "second"}


def test_a_cloud_id_leads_to_its_deployment() -> None:
    place = base64.b64encode(b"eu.example.com:9243$abcd$efgh").decode()
    server = SearchServer(cloud_id=f"mine:{place}", api_key="a2V5")
    (node,) = ElasticsearchClient(server)._api.transport.node_pool.all()
    assert node.base_url == "https://abcd.eu.example.com:9243"
    assert repr(server) == "SearchServer(mine)"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "COTRAIL_SEARCH_CLOUD_ID"),
        ({"urls": ("http://host:9200",), "cloud_id": "mine:aGk="}, "COTRAIL_SEARCH_CLOUD_ID"),
        ({"cloud_id": "mine:aGk=", "sniff": True}, "COTRAIL_SEARCH_SNIFF"),
        ({"cloud_id": "no cloud"}, "COTRAIL_SEARCH_CLOUD_ID"),
        ({"urls": ("http://ada:one@host:1", "http://ada:two@host:2")}, "several users"),
    ],
)
def test_a_server_that_is_named_twice_or_wrongly_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as raised:
        ElasticsearchClient(SearchServer(**options))
    assert "two" not in str(raised.value)
