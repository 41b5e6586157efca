"""The live web as a corpus: a server of ours plays every provider, and the sites whose pages they find."""

# ruff: noqa: F401, F811 - fixtures are imported

import gzip
import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

pytest.importorskip("httpx2", reason="httpx2 isn't installed")
pytest.importorskip("trafilatura", reason="trafilatura isn't installed")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlalchemy import Engine, select

from cotrail.configuration.files import corpora_of
from cotrail.configuration.settings import settings
from cotrail.core.actions.registry import KINDS
from cotrail.core.actions.retrieve import Open, Retrieve
from cotrail.core.ports.cancellation import Interrupted
from cotrail.core.questions import Question
from cotrail.core.results import Retrieved
from cotrail.core.system import Answer, System, expect
from cotrail.engines.language_models.served import client
from cotrail.engines.retrieval import web_pages
from cotrail.engines.retrieval.retrieve_server import manifest_of
from cotrail.engines.retrieval.search_server import PROVIDERS, WebSearch
from cotrail.engines.retrieval.web_pages import address_in, is_public, normal
from cotrail.engines.retrieval.web_search import ADAPTERS, WebCorpus
from cotrail.errors import BlockedError, CotrailError, QuotaError, StepError, TransientStepError, UnavailableError
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.records.runs import Runs
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import attempts, runs, steps
from cotrail.models.schema.tables import questions as questions_
from cotrail.systems.spec import Needs, SystemSpec
from cotrail.tasks.runtime import Runtime
from cotrail.tasks.step import carry_out, perform
from tests.cases import each_case
from tests.conftest import Eventually
from tests.integration.conftest import Cotrail, Query
from tests.integration.served import KEY, QuietServer, answer
from tests.integration.stepping import unsent
from tests.integration.test_outages import make_due
from tests.integration.test_several_corpora import EachSettings, begin, find, home
from tests.searching import search

INK = """<html><head><title>Ink &amp;
 paper</title><script>stolen()</script></head><body><nav><a href="/">Menu</a></nav><article><h1>Ink</h1>
<p>Ink is made of soot and gum, and has been made so for a long time in many places.</p>
<p>It is written &lt;script&gt;alert(1)&lt;/script&gt; with a pen, by people who have time.</p>
</article></body></html>"""


class Site:
    """Answers GET and POST as `pages` has it by path, and remembers what it was asked."""

    def __init__(self, port: int = 0, certificate: Path | None = None) -> None:
        self.pages: dict[str, Callable[[Any], None]] = {}
        self.asked: list[tuple[str, str, dict[str, str], dict[str, Any]]] = []
        self.released = threading.Event()
        self._server = QuietServer(("127.0.0.1", port), _handler(self))
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        return [path for _, path, _, _ in self.asked]

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            self._answer("GET", parts.path, dict(parse_qsl(parts.query)))

        def do_POST(self) -> None:
            self._answer("POST", self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, method: str, path: str, body: dict[str, Any]) -> None:
            site.asked.append((method, path, dict(self.headers), body))
            try:
                site.pages.get(path, answer(404, {"detail": "not here"}))(self)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named so by the library
            pass

    return Handler


def html(content: bytes | str, status: int = 200, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """A page; names of headers are written with `_`."""
    body = content.encode() if isinstance(content, str) else content

    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in ({"Content_Type": "text/html; charset=utf-8"} | headers).items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return reply


def endless(piece: bytes, released: threading.Event | None = None) -> Callable[[BaseHTTPRequestHandler], None]:
    """A page that never ends: as fast as it is read, or one piece and then nothing until released."""

    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(piece)
        if released:
            released.wait(60)
        while not released:
            handler.wfile.write(piece)

    return reply


def led(to: str, status: int = 302) -> Callable[[BaseHTTPRequestHandler], None]:
    return html("", status, Location=to)


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def declared(site: Site, provider: Any = "tavily", **more: Any) -> WebSearch:
    usual: dict[str, Any] = {"url": f"{site.url}/search", "store": "text", "private_addresses": True}
    return WebSearch(provider=provider, **(usual | {"timeout_seconds": 10.0} | more))


def results(site: Site, *found: Mapping[str, Any]) -> None:
    site.pages["/search"] = answer(200, {"results": found})


def hit(site: Site, name: str = "ink", **more: Any) -> dict[str, Any]:
    return {"title": "Ink", "url": f"{site.url}/{name}", "content": "Of soot."} | more


@pytest.fixture
def corpus(site: Site) -> WebCorpus:
    results(site, hit(site), hit(site, "pen", title="Pen", content="Writes."))
    site.pages["/ink"] = html(INK)
    return WebCorpus("web", declared(site))


def opened(site: Site, path: str, **more: Any) -> str:
    """What a page at this path says, or why it can't be read."""
    return "\n".join(each.text for each in WebCorpus("web", declared(site, **more)).titled(f"{site.url}{path}"))


# Providers.

FORMS: dict[str, tuple[str, str, dict[str, Any], Callable[[list[Any]], Any]]] = {
    "brave": (
        "X-Subscription-Token",
        "description",
        {"q": "ink", "count": "2", "text_decorations": "false"},
        lambda found: {"type": "search", "web": {"type": "search", "results": found}},
    ),
    "exa": (
        "x-api-key",
        "text",
        {"query": "ink", "numResults": 2, "contents": {"text": {"maxCharacters": 1000}}},
        lambda found: {"requestId": "1", "results": found},
    ),
    "searxng": (
        "Authorization",
        "content",
        {"q": "ink", "format": "json"},
        lambda found: {"query": "ink", "results": found, "answers": [], "unresponsive_engines": [["x", "timeout"]]},
    ),
    "serper": (
        "X-API-KEY",
        "snippet",
        {"q": "ink", "num": 2},
        lambda found: {"searchParameters": {"q": "ink"}, "organic": found},
    ),
    "tavily": (
        "Authorization",
        "content",
        {"query": "ink", "max_results": 2},
        lambda found: {"query": "ink", "answer": None, "results": found},
    ),
}


def test_each_provider_has_a_form() -> None:
    assert set(FORMS) == set(ADAPTERS) == set(PROVIDERS)


@each_case("provider", list(FORMS))
def test_each_provider_is_asked_in_its_form(site: Site, provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_KEY", KEY)
    site.asked.clear()
    header, snippet, body, form = FORMS[provider]
    link = "link" if provider == "serper" else "url"
    found = [
        {"title": "Ink", link: f"HTTP://127.0.0.1:{site.port}/ink#top", snippet: "Of soot.", "score": 0.5},
        {"title": "Ink again", link: f"{site.url}/ink", snippet: "Twice."},
        {"title": None, link: f"{site.url}/pen?a=b c", snippet: None, "position": 3},
        {"title": "More", link: f"{site.url}/more", snippet: "x"},
    ]
    site.pages["/search"] = answer(200, form(found))
    corpus = WebCorpus("web", declared(site, provider, key_variable="WEB_KEY"))
    ink, pen = search(corpus, "ink", 2)
    assert (ink.paragraph.id, ink.paragraph.text, ink.score) == (f"{site.url}/ink", "Of soot.", 1)
    assert ink.paragraph.title == f"Ink {site.url}/ink"
    assert (pen.paragraph.title, pen.paragraph.text, pen.score) == (f"{site.url}/pen?a=b%20c", "", 0.5)
    [(method, _, headers, asked)] = site.asked
    assert (method, asked) == (ADAPTERS[provider].method, body)  # type: ignore[index]
    assert headers[header] == (f"Bearer {KEY}" if header == "Authorization" else KEY)
    site.pages["/search"] = answer(200, form([]) | {"unresponsive_engines": []})
    assert search(corpus, "ink", 2) == ()


def test_where_nothing_is_found_there_are_no_hits(site: Site) -> None:
    site.pages["/search"] = answer(200, {"type": "search", "query": {"original": "ink"}})
    assert search(WebCorpus("web", declared(site, "brave")), "ink", 2) == ()
    results(site)
    assert search(WebCorpus("web", declared(site)), "ink", 2) == ()


def test_engines_that_did_not_answer_are_not_no_results(site: Site) -> None:
    site.pages["/search"] = answer(200, {"results": [], "unresponsive_engines": [["brave", "too many requests"]]})
    with pytest.raises(TransientStepError, match="none of the engines"):
        search(WebCorpus("web", declared(site, "searxng")), "ink", 2)


def test_long_queries_are_cut_and_many_results_asked_for_as_providers_allow(corpus: WebCorpus, site: Site) -> None:
    search(corpus, "word " * 200 + "\ud800", 500)
    search(corpus, "\ud800" + "w" * 1000, 1)
    first, second = (body for _, _, _, body in site.asked)
    assert first == {"query": " ".join(["word"] * 50), "max_results": 20}
    assert second["query"] == "\ufffd" + "w" * 399


@each_case(
    ("content", "problem"),
    [
        ([], "Expected `object`"),
        ({}, "it has no results"),
        ({"items": []}, "it has no results"),
        ({"results": {}}, "results"),
        ({"results": ["x"]}, "results"),
        ({"results": [{"title": "Ink"}]}, "no result has the address"),
        ({"results": [{"title": "Ink", "url": "ftp://x/y"}, {"url": 7}, {"url": ""}]}, "no result has the address"),
    ],
    ids=str,
)
def test_an_answer_in_another_form_says_what_is_wrong(site: Site, content: Any, problem: str) -> None:
    site.pages["/search"] = answer(200, content)
    with pytest.raises(StepError, match=problem) as error:
        search(WebCorpus("web", declared(site)), "ink", 3)
    assert "[web.web] of search.toml" in str(error.value)


@each_case("content", [b"", b"<html>", b"\xff\xfe", b"[" * 100_000])
def test_an_answer_that_is_no_answer_is_refused(site: Site, content: bytes) -> None:
    site.pages["/search"] = html(content)
    with pytest.raises(StepError, match="the form of tavily"):
        search(WebCorpus("web", declared(site)), "ink", 3)


def test_a_snippet_is_cut_as_a_page_is(site: Site) -> None:
    results(site, hit(site, content="x" * 1000, title="t" * 1000))
    [found] = search(WebCorpus("web", declared(site, page_characters=10)), "ink", 5)
    assert (found.paragraph.text, len(found.paragraph.title) < 400) == ("x" * 10, True)


def test_results_without_an_address_are_left_out(site: Site) -> None:
    results(site, {"title": "x"}, {"url": "javascript:alert(1)"}, hit(site), {"url": f"http://me:pw@{site.port}/"})
    assert [each.paragraph.text for each in search(WebCorpus("web", declared(site)), "ink", 5)] == ["Of soot."]


@each_case(
    ("status", "said", "kind"),
    [
        (503, "no", UnavailableError),
        (429, "no", UnavailableError),
        (402, "no", QuotaError),
        (400, "Not enough credits", QuotaError),
        (432, "This request exceeds your plan's set usage limit", QuotaError),
        (401, "no", BlockedError),
        (500, "no", TransientStepError),
        (422, "no", StepError),
        (302, "no", BlockedError),
    ],
)
def test_a_refusal_is_an_error_of_its_kind_and_never_has_the_key(
    site: Site, status: int, said: str, kind: type[CotrailError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEB_KEY", KEY)
    site.pages["/search"] = html(json.dumps({"detail": f"{said} {KEY}"}), status, Retry_After="0.01")
    with pytest.raises(kind) as error:
        search(WebCorpus("web", declared(site, "serper", key_variable="WEB_KEY")), "ink", 3)
    assert KEY not in str(error.value)
    assert type(error.value) is kind


def test_a_provider_that_is_away_is_unavailable(corpus: WebCorpus, site: Site) -> None:
    site.close()
    with pytest.raises(UnavailableError, match="can't be reached"):
        search(corpus, "ink", 3)


def test_a_key_that_is_missing_is_named(site: Site) -> None:
    with pytest.raises(BlockedError, match="WEB_KEY holds no key"):
        WebCorpus("web", declared(site, "serper", key_variable="WEB_KEY"))


def test_what_the_web_can_not_do_is_refused_by_name(corpus: WebCorpus, site: Site) -> None:
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: search(corpus, "ink", 3, ("Ink",)), "searches of titles"),
        (lambda: search(corpus, "ink", 3, field="title"), "searches of titles"),
        (lambda: search(corpus, "ink", 3, retriever="dense"), "no option 'retriever'"),
        (lambda: corpus.titled("Ink"), "name a page by its address"),
        (lambda: corpus.titled("file:///etc/passwd"), "name a page by its address"),
        (lambda: corpus.paragraphs(["1"]), "look-ups of paragraphs"),
    ]
    for ask, said in refused:
        with pytest.raises(StepError, match=said):
            ask()
    assert site.asked == []


def test_the_revision_names_the_provider_its_address_and_the_options() -> None:
    first = WebSearch(provider="exa", store="text")
    others = [
        WebSearch(provider="tavily", store="text"),
        WebSearch(provider="exa", store="text", url="http://proxy/search"),
        WebSearch(provider="exa", store="text", read=True),
        WebSearch(provider="exa", store="text", page_characters=10),
    ]
    assert len({manifest_of(each).revision for each in (first, *others)}) == 5
    same = WebSearch(provider="exa", store="text", timeout_seconds=1, key_variable="A_KEY")
    assert manifest_of(same) == manifest_of(first)
    assert "exa at https://api.exa.ai/search" in manifest_of(first).analyzer


# Pages.


def test_a_page_is_opened_by_the_address_in_its_title(corpus: WebCorpus, site: Site) -> None:
    [found, _] = search(corpus, "ink", 2)
    [paragraph] = corpus.titled(found.paragraph.title)
    assert paragraph.id == f"{site.url}/ink#1"
    assert paragraph.title == f"Ink & paper {site.url}/ink"
    assert "Ink is made of soot and gum" in paragraph.text
    assert "stolen" not in paragraph.text
    assert "<script>alert(1)</script>" in paragraph.text  # as text, which pages and reports escape
    assert corpus.titled(f"{site.url}/ink#part") == (paragraph,)
    assert site.paths() == ["/search", "/robots.txt", "/ink", "/ink"]
    assert site.asked[-1][2]["User-Agent"].startswith("cotrail/")


def test_a_long_page_is_cut_and_comes_in_passages(site: Site) -> None:
    site.pages["/long"] = html("\n".join(f"line {n} of the text" for n in range(5000)), Content_Type="text/plain")
    passages = WebCorpus("web", declared(site, page_characters=5000)).titled(f"{site.url}/long")
    assert len(passages) == 8
    assert [each.id for each in passages[:2]] == [f"{site.url}/long#1", f"{site.url}/long#2"]
    assert {each.title for each in passages} == {f"{site.url}/long"}
    assert passages[0].text.startswith("line 0 of the text\nline 1")
    assert 4900 <= sum(len(each.text) for each in passages) <= 5000


def test_the_text_of_pages_takes_the_place_of_snippets_where_they_can_be_read(site: Site) -> None:
    results(site, hit(site), hit(site, "away"))
    site.pages["/ink"] = html(INK)
    ink, away = search(WebCorpus("web", declared(site, read=True)), "ink", 2)
    assert ink.paragraph.text.startswith("Ink\nInk is made of soot")
    assert away.paragraph.text == "Of soot."


@each_case(
    ("charset", "encoding"),
    [("iso-8859-1", "iso-8859-1"), ("", "utf-8"), ("no-such", "utf-8"), ("rot13", "utf-8"), ("utf-16", "utf-16")],
)
def test_a_page_is_read_in_its_encoding(site: Site, charset: str, encoding: str) -> None:
    text = "<!doctype html><p>Die Tinte ist schwarz, und sie wird aus Ruß gemacht, seit langer Zeit und überall.</p>"
    site.pages["/ink"] = html(text.encode(encoding), Content_Type=f"text/html; charset={charset}")
    assert "Ruß" in opened(site, "/ink")


LARGE = 5_000_000


@each_case(
    ("page", "problem"),
    [
        (html("", 404), "its server answered 404"),
        (html("x", 500), "its server answered 500"),
        (html("x", 204), "no text|can't be fetched"),
        (html(b"%PDF-1.7", Content_Type="application/pdf"), "'application/pdf', and neither HTML nor plain text"),
        (html(""), "no text"),
        (html("<script>document.write('all of it')</script>"), "no text"),
        (html(b"\x00\xff" * 1000), "no text|can't be read"),
        (endless(b"<p>more</p>" * 10_000), "larger than 5,000,000 bytes"),
        (html(gzip.compress(b"0" * 100_000_000), Content_Encoding="gzip"), "larger than 5,000,000 bytes"),
        (html(b"no gzip", Content_Encoding="gzip"), "can't be unpacked"),
        (html(b"x", Content_Encoding="br"), "packed as 'br'"),
        (led("/gone"), "its server answered 404"),
        (led("/page"), "redirects more than 5 times"),
        (led("file:///etc/passwd"), "no address of a page"),
        (led("javascript:alert(1)"), "no address of a page"),
        (led("http://[::1"), "no address of a page|can't be fetched"),
        (led("http://user:pw@127.0.0.1/"), "no address of a page"),
        (led("http://nowhere.invalid/"), "robots.txt doesn't allow|isn't known"),
    ],
    ids=[
        *("404", "500", "204", "pdf", "empty", "scripts", "binary", "endless", "bomb", "no gzip", "brotli"),
        *("led to nothing", "in a circle", "to a file", "to a script", "to no url", "with a password", "nowhere"),
    ],
)
def test_a_page_that_can_not_be_read_says_why(site: Site, page: Any, problem: str) -> None:
    site.pages["/page"] = page
    corpus = WebCorpus("web", declared(site))
    [paragraph] = corpus.titled(f"{site.url}/page")
    assert (paragraph.id, paragraph.title) == (f"{site.url}/page",) * 2
    assert re.search(f"^The page can't be read: .*({problem})", paragraph.text), paragraph.text


def test_a_page_that_is_silent_or_takes_a_parser_too_long_is_given_up(site: Site) -> None:
    site.pages["/silent"] = endless(b"<p>", site.released)
    # libxml2 takes time quadratic in the attributes of an element.
    site.pages["/slow"] = html("<p " + " ".join(f'a{n}="x"' for n in range(300_000)) + ">text")
    assert "it took longer than 0.3 s" in opened(site, "/silent", timeout_seconds=0.3)
    assert "it took longer than 1.5 s" in opened(site, "/slow", timeout_seconds=1.5)


def test_a_packed_page_is_unpacked(site: Site) -> None:
    site.pages["/ink"] = html(gzip.compress(INK.encode()), Content_Encoding="gzip")
    assert "soot and gum" in opened(site, "/ink")


def test_a_page_behind_redirects_is_read(site: Site) -> None:
    site.pages |= {f"/{n}": led(f"/{n + 1}", status) for n, status in enumerate((301, 302, 303, 307, 308))}
    site.pages["/5"] = html(INK)
    assert "soot and gum" in opened(site, "/0")


# Addresses.


@each_case(
    "address",
    [
        *("127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("100.100.100.200", "168.63.129.16", "224.0.0.1", "255.255.255.255", "::1", "::", "fd00:ec2::254"),
        *("fe80::1%eth0", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"),
    ],
)
def test_addresses_that_are_none_of_the_internet(address: str) -> None:
    assert not is_public(address)


def test_addresses_of_the_internet() -> None:
    assert all(map(is_public, ("8.8.8.8", "2606:4700::1111", "64:ff9b::808:808")))


@each_case("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254"])
def test_no_page_at_a_private_address_is_asked_for(site: Site, host: str) -> None:
    corpus = WebCorpus("web", declared(site, private_addresses=False))
    [paragraph] = corpus.titled(f"http://{host}:{site.port}/ink")
    assert "private" in paragraph.text or "robots.txt doesn't allow" in paragraph.text or "known" in paragraph.text
    assert site.asked == []


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.1 counts as public here, where no other address can be asked."""
    monkeypatch.setattr(web_pages, "is_public", lambda text: text == "127.0.0.1" or is_public(text))


@each_case("host", ["127.0.0.2", "[::1]", "169.254.169.254", "metadata.test", "0", "10.1.2.3"])
@pytest.mark.usefixtures("public")
def test_no_redirect_leads_to_a_private_address(site: Site, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, {"metadata.test": ["169.254.169.254"]})
    site.asked.clear()
    site.pages["/robots.txt"] = answer(404)
    site.pages["/page"] = led(f"http://{host}:{site.port}/ink")
    site.pages["/ink"] = html(INK)
    corpus = WebCorpus("web", declared(site, private_addresses=False))
    [paragraph] = corpus.titled(f"{site.url}/page")
    assert "can't be read" in paragraph.text
    assert site.paths() == ["/robots.txt", "/page"]
    site.pages["/robots.txt"] = led(f"http://{host}:{site.port}/other")
    site.asked.clear()
    corpus = WebCorpus("web", declared(site, private_addresses=False))
    assert "robots.txt doesn't allow" in corpus.titled(f"{site.url}/page")[0].text
    assert site.paths() == ["/robots.txt"]


def names(monkeypatch: pytest.MonkeyPatch, known: dict[str, list[str]]) -> list[str]:
    """Answers look-ups of these names, the last of a list from then on; returns what is looked up."""
    real, looked_up = socket.getaddrinfo, list[str]()

    def getaddrinfo(host: str, *args: Any, **kwargs: Any) -> Any:
        looked_up.append(host)
        answers = known.get(host, [host])
        return real(answers.pop(0) if len(answers) > 1 else answers[0], *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return looked_up


@pytest.mark.usefixtures("public")
def test_a_connection_goes_to_the_address_that_was_checked(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that means something public, and private at its next look-up, leads nowhere private."""
    site.pages["/ink"] = html(INK)
    looked_up = names(monkeypatch, {"turning.test": ["127.0.0.1", "127.0.0.1", "127.0.0.2"]})
    corpus = WebCorpus("web", declared(site, private_addresses=False))
    address = f"http://turning.test:{site.port}/ink"
    assert "soot and gum" in corpus.titled(address)[0].text
    assert [host for host in looked_up if host == "turning.test"] == ["turning.test"] * 2  # robots.txt and the page
    assert site.asked[-1][2]["Host"] == f"turning.test:{site.port}"
    assert "private address" in corpus.titled(address)[0].text
    assert len(site.asked) == 2


@pytest.mark.usefixtures("public")
def test_one_private_address_of_several_is_enough(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *args, **kwargs: [*real("127.0.0.1", *args, **kwargs), *real("10.0.0.1", *args, **kwargs)],
    )
    corpus = WebCorpus("web", declared(site, private_addresses=False))
    assert "robots.txt doesn't allow" in corpus.titled(f"http://two.test:{site.port}/ink")[0].text
    assert site.asked == []


def certificate(folder: Path, name: str) -> Path:
    """A certificate of this name that vouches for itself, and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8
    written = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    file = folder / "certificate.pem"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + written)
    return file


@pytest.mark.usefixtures("public")
def test_a_certificate_is_that_of_the_name_and_not_of_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = certificate(tmp_path, "right.test")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    names(monkeypatch, {"right.test": ["127.0.0.1"], "wrong.test": ["127.0.0.1"]})
    site = Site(certificate=file)
    site.pages["/ink"] = html(INK)
    corpus = WebCorpus("web", declared(site, private_addresses=False, url="http://127.0.0.1:1/search"))
    assert "soot and gum" in corpus.titled(f"https://right.test:{site.port}/ink")[0].text
    assert "robots.txt doesn't allow" in corpus.titled(f"https://wrong.test:{site.port}/ink")[0].text
    assert len(site.asked) == 2
    site.close()


def test_a_network_without_name_servers_is_no_answer(corpus: WebCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    with pytest.raises(TransientStepError, match="no name server answers"):
        corpus.titled("http://example.test/")


@given(st.text() | st.text().map("https://{}".format) | st.text().map("http://x.org/{}".format))
def test_whatever_is_named_as_a_page_is_an_address_or_none(text: str) -> None:
    for address in (normal(text), address_in(text)):
        assert address == "" or (normal(address) == address and address.startswith(("http://", "https://")))
        assert len(address) <= web_pages.LONGEST_ADDRESS


@each_case(
    ("title", "address"),
    [
        ("Ink https://x.org/Ink_(colour)", "https://x.org/Ink_(colour)"),
        ("[Ink](<HTTPS://X.org:443/a b>)", "https://x.org/a"),
        ("https://a.org https://b.org#c", "https://b.org"),
        ("Ink", ""),
        ("https://", ""),
        ("https://x.org/" + "a" * 3000, ""),
    ],
)
def test_the_last_address_of_a_title_counts(title: str, address: str) -> None:
    assert address_in(title) == normal(address)


# robots.txt.


@each_case(
    ("robots", "reads"),
    [
        (html("User-agent: *\nDisallow: /private", Content_Type="text/plain"), True),
        (html("User-agent: *\nDisallow: /ink", Content_Type="text/plain"), False),
        (html("User-agent: cotrail\nDisallow: /\n\nUser-agent: *\nAllow: /", Content_Type="text/plain"), False),
        (html("User-agent: cotrail\nAllow: /\n\nUser-agent: *\nDisallow: /", Content_Type="text/plain"), True),
        (html(b"\xff\xfe\x00<html>"), True),
        (html("", 404), True),
        (html("", 403), True),
        (html("", 503), False),
        (led("/rules"), False),
        (led("/robots.txt"), False),
        (html("User-agent: *\nDisallow: /ink\n" + "Disallow: /x\n" * 100_000), False),
        (endless(b"User-agent: *\nDisallow: /ink\n" * 100), False),
    ],
    ids=["else", "all", "us", "but us", "none", "404", "403", "503", "led", "circle", "long", "endless"],
)
def test_robots_txt_is_obeyed(site: Site, robots: Any, reads: bool) -> None:  # noqa: FBT001 - a case
    site.asked.clear()
    site.pages |= {"/robots.txt": robots, "/ink": html(INK), "/rules": html("User-agent: *\nDisallow: /")}
    text = opened(site, "/ink")
    assert ("soot and gum" in text, "robots.txt doesn't allow it" in text) == (reads, not reads)
    assert ("/ink" in site.paths()) == reads


def test_a_search_ends_where_its_worker_does(corpus: WebCorpus, site: Site) -> None:
    site.pages["/silent"] = endless(b"<p>", site.released)
    threading.Timer(0.2, corpus.interrupt).start()
    with pytest.raises(Interrupted):
        corpus.titled(f"{site.url}/silent")
    with pytest.raises(Interrupted):
        search(corpus, "ink", 3)


# Runs.


def follow(question: Question, _: Any, __: EachSettings) -> System:
    """Searches, opens the first page that is found, and one that isn't there."""
    found = expect((yield Retrieve(query=question.text, count=2)), Retrieved).paragraphs
    page = expect((yield Open(title=found[0].title)), Retrieved).paragraphs
    gone = expect((yield Open(title=found[1].title)), Retrieved).paragraphs
    return Answer(text=f"{len(found)} {gone[0].text[:22]}", paragraphs=(*page, *gone))


FOLLOW = SystemSpec(
    name="each-corpus",
    version=1,
    title="Follow",
    settings=EachSettings,
    open=follow,
    needs=lambda _: Needs(corpus=True),
)


def declare(home: Path, site: Site) -> None:
    (home / "search.toml").write_text(
        f'[web.there]\nprovider = "tavily"\nurl = "{site.url}/search"\nstore = "text"\nprivate_addresses = true\n'
    )


@pytest.mark.usefixtures("verified")
def test_a_run_waits_while_the_provider_is_away_and_is_replayed_without_the_web(
    engine: Engine,
    home: Path,
    site: Site,
    here: Runtime,
    sent: list[Dispatch],
    query: Query,
    eventually: Eventually,
    cotrail: Cotrail,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find_follow(*_: Any) -> SystemSpec:
        return FOLLOW

    for module in ("configuring", "submission", "forking"):
        monkeypatch.setattr(f"cotrail.services.runs.{module}.find_system", find_follow)
    here.ledger.runs = Runs(find_follow)
    declare(home, site)
    site.close()
    run = begin(engine, home, corpora=["there"], settings=None)
    ended = select(questions_.c.status, questions_.c.answer).where(questions_.c.run_id == run)

    def has_ended() -> bool:
        make_due(engine)
        for message in (*sent, *(each for kind in KINDS for each in unsent(engine, kind))):
            perform(message, carry_out)
        return bool(query(ended)[0]["status"] != "open")

    assert not has_ended()
    again = Site(site.port)
    results(again, hit(again), hit(again, "gone"))
    again.pages["/ink"] = html(INK)
    eventually(has_ended, "the question has ended")
    again.close()
    assert query(ended)[0]["answer"] == "2 The page can't be read"
    outcomes = [each["outcome"] for each in query(select(attempts.c.outcome))]
    assert set(outcomes) == {"unavailable", "finished"}
    assert all(row["finished_at"] for row in query(select(steps.c.finished_at)))  # when each page was seen
    with engine.connect() as connection:
        assert [each.divergence for each in replay_run(connection, run, find_follow)] == [""]
    [row] = query(select(runs.c.corpus_revision).where(runs.c.id == run))
    assert row["corpus_revision"] == corpora_of(settings()).manifests()["there"].revision
    traced = cotrail("trace", run, "q").output
    assert "soot and gum" in traced
    written = tmp_path / "report.html"
    assert cotrail("report", run, "--html", written).exit_code == 0
    assert "<script>alert(1)" not in written.read_text()


def test_commands_show_it_and_search_it(home: Path, site: Site, cotrail: Cotrail) -> None:
    declare(home, site)
    results(site, hit(site))
    assert "Of soot." in cotrail("search", "there", "ink").output
    assert "there" in cotrail("corpora").output
    assert "the live web, searched by tavily" in cotrail("corpora", "there").output
    assert "is only read" in str(cotrail("index", home / "seas.jsonl", "--name", "there").exception)
