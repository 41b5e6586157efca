"""The Elasticsearch retriever against servers of its own kind, with faults and TLS put between.

Which servers these are, `tests/search_servers.py` says.
"""

import base64
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
import pytest
from msgspec.structs import replace
from pydantic import SecretStr
from sqlalchemy import Engine, select, update
from typer.testing import CliRunner

from benchmarks.contenders.cotrail import submission
from benchmarks.search_servers import Running
from cotrail.cli.main import app
from cotrail.configuration.files import corpora_of
from cotrail.configuration.settings import Settings, settings
from cotrail.core.actions.kind import Engines
from cotrail.core.actions.retrieve import OPEN, Open
from cotrail.core.binding import Binding
from cotrail.core.ports.retriever import Retriever
from cotrail.core.questions import Hit, Paragraph
from cotrail.engines.retrieval.elasticsearch import building, client, retriever
from cotrail.engines.retrieval.elasticsearch.index import indexes, remove
from cotrail.engines.retrieval.elasticsearch.retriever import ElasticsearchRetriever
from cotrail.engines.retrieval.elasticsearch.store import ElasticsearchStore
from cotrail.engines.retrieval.engine import NewIndex
from cotrail.engines.retrieval.search_server import SearchServer
from cotrail.engines.retrieval.stores import corpus_store
from cotrail.errors import (
    CorpusChangedError,
    CorpusError,
    CotrailError,
    InputError,
    StepError,
    TransientStepError,
    UnavailableError,
    UnknownNameError,
)
from cotrail.models.records.runs import RunPlan
from cotrail.models.schema.tables import attempts, steps
from cotrail.tasks import step
from cotrail.tasks.engines import LoadedEngines
from cotrail.tasks.runtime import Runtime
from tests.conftest import Eventually
from tests.integration.conftest import Query
from tests.integration.stepping import begin, unsent
from tests.search_servers import OSMEM
from tests.searching import search
from tests.unit.docstrings import overlap, passages, questions

PAPER = Paragraph(id="b", title="Paper", text="Paper is made of wood pulp.")
INK = Paragraph(id="a", title="Ink", text="Ink is a liquid that stains paper.")
PEN = Paragraph(id="c", title="Pen", text="A pen writes with ink.")

Reach = Callable[..., ElasticsearchStore]


@pytest.fixture
def url(search_server: Running) -> str:
    """The address of a running server."""
    return search_server.url


@pytest.fixture
def prefix(url: str) -> Iterator[str]:
    """What this test's indexes begin with, so that tests don't meet."""
    own = f"test-{secrets.token_hex(4)}-"
    yield own
    there = client.ElasticsearchClient(SearchServer(urls=(url,)))
    for name in indexes(there, f"{own}*"):
        remove(there, name)


@pytest.fixture
def reach(url: str, prefix: str) -> Reach:
    def reach(*urls: str, **options: Any) -> ElasticsearchStore:
        return ElasticsearchStore(SearchServer(urls=urls or (url,), prefix=prefix, **options))

    return reach


@pytest.fixture
def names(url: str, prefix: str) -> Callable[[], list[str]]:
    """The indexes that this test has in the server."""
    there = client.ElasticsearchClient(SearchServer(urls=(url,)))
    return lambda: sorted(indexes(there, f"{prefix}*"))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between attempts are short."""
    monkeypatch.setattr(client, "LONGEST_PAUSE", 0.01)


def made(store: ElasticsearchStore, paragraphs: Sequence[Paragraph] = (PAPER, INK, PEN)) -> ElasticsearchRetriever:
    store.build("corpus", paragraphs)
    return store.by_words("corpus")


def found(corpus: Retriever, query: str, count: int = 10, titles: tuple[str, ...] = ()) -> list[str]:
    return [hit.paragraph.id for hit in search(corpus, query, count, titles)]


# Searching.


def test_the_best_paragraphs_come_first_and_whole(reach: Reach) -> None:
    hits = search(made(reach()), "ink", 2)
    assert [hit.paragraph for hit in hits] == [INK, PEN]
    assert [hit.rank for hit in hits] == [1, 2]
    assert hits[0].score > hits[1].score > 0


@pytest.mark.parametrize("query", ["", "  ", "the of", "?!", "unheard", "\ud800"])
def test_a_query_without_known_words_finds_nothing(reach: Reach, query: str) -> None:
    assert found(made(reach()), query) == []


@pytest.mark.parametrize("query", ['"ink" AND (', "title:ink [a TO b] ^4 ~2 \\ ink*", "ink\ud800\0 ink", "ink " * 500])
def test_a_query_is_plain_words_whatever_is_in_it(reach: Reach, query: str) -> None:
    assert {"a", "c"} <= set(found(made(reach()), query))


def test_no_paragraphs_asked_for_are_none_found(reach: Reach) -> None:
    assert found(made(reach()), "ink", 0) == []


def test_equal_scores_are_ordered_by_id_also_at_the_cut(reach: Reach) -> None:
    ids = [f"{i * 7919 % 600:03}" for i in range(600)]
    corpus = made(reach(), [Paragraph(id=id_, title="Plum", text="plum fig") for id_ in ids])
    for count in (1, 7, 100):
        assert found(corpus, "plum fig", count) == sorted(ids)[:count]
    assert found(corpus, "fig", 100_000) == sorted(ids)


def test_titles_restrict_the_search_and_leave_scores_as_they_are(reach: Reach) -> None:
    corpus = made(reach())
    scores = {hit.paragraph.id: hit.score for hit in search(corpus, "ink paper", 3)}
    hits = search(corpus, "ink paper", 3, ("Pen", "Paper", "Nowhere"))
    assert {hit.paragraph.title for hit in hits} == {"Paper", "Pen"}
    assert {hit.paragraph.id: hit.score for hit in hits} == pytest.approx({id_: scores[id_] for id_ in ("b", "c")})
    assert found(corpus, "ink", 3, ("pen",)) == []


def test_a_search_of_titles_alone_ignores_what_stands_in_the_text(reach: Reach) -> None:
    corpus = made(reach())
    assert {hit.paragraph.id for hit in search(corpus, "a pen for paper", 3, field="title")} == {"b", "c"}
    assert search(corpus, "liquid", 3, field="title") == ()


def test_titles_after_the_search_pick_from_its_best_and_add_to_the_score(reach: Reach) -> None:
    corpus = made(reach())
    plain_scores = {hit.paragraph.id: hit.score for hit in search(corpus, "ink", 3)}
    (pen,) = search(corpus, "ink", 2, ("PEN ", "Nowhere"), scope="after")
    assert (pen.paragraph, pen.rank) == (PEN, 1)
    assert pen.score > plain_scores["c"]
    assert search(corpus, "ink paper", 1, ("The", "Nowhere"), scope="after") == ()


def test_of_equal_texts_the_lowest_of_the_best_counts_alone_before_the_cut(reach: Reach) -> None:
    twins = [Paragraph(id="d", title="Ink well", text="A well."), Paragraph(id="e", title="Well", text=" a WELL. ")]
    corpus = made(reach(), [*twins, PAPER])
    assert [hit.paragraph.id for hit in search(corpus, "ink well", 2)] == ["d", "e"]
    (hit,) = search(corpus, "ink well", 1, distinct=True)
    assert (hit.paragraph.id, hit.rank) == ("e", 1)
    assert search(corpus, "ink well", 1, ("Ink well", "Nowhere"), scope="after", distinct=True) == ()


def test_one_title_after_the_search_must_be_met_if_it_has_words(reach: Reach) -> None:
    corpus = made(reach(), [PAPER, INK, PEN, Paragraph(id="i", title="It", text="A film.")])
    assert [hit.paragraph for hit in search(corpus, "wood", 3, ("Ink",), scope="after")] == [INK]
    assert [hit.paragraph.id for hit in search(corpus, "film", 3, ("It",), scope="after")] == ["i"]


def test_paragraphs_are_found_by_their_ids_and_titles(reach: Reach, monkeypatch: pytest.MonkeyPatch) -> None:
    it = [Paragraph(id=id_, title="It", text=f"It is {id_}.") for id_ in ("z", "y")]
    corpus = made(reach(), [PAPER, INK, *it, Paragraph(id="w", title="it", text="Another.")])
    assert corpus.titled("It") == (it[1], it[0])
    assert corpus.titled("Nothing") == ()
    engines = cast(Engines, SimpleNamespace(retriever=lambda _: corpus))
    opened = tuple(Hit(paragraph=each, rank=rank, score=1.0) for rank, each in enumerate((it[1], it[0]), start=1))
    assert OPEN.carry_out(Open(title="It"), engines).hits == opened
    assert OPEN.carry_out(Open(title="IT"), engines).hits == ()
    monkeypatch.setattr(retriever, "MOST_HITS", 2)
    assert corpus.paragraphs(["a", "nowhere", "b", "a"]) == {"a": INK, "b": PAPER}
    assert corpus.paragraphs([]) == {}


def test_many_threads_search_together_in_few_requests(gate: "Gate", reach: Reach, eventually: Eventually) -> None:
    corpus = made(reach(gate.url))
    found(corpus, "ink")
    gate.requests.clear()
    gate.faults = ["hold"]
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(found, corpus, "ink")
        eventually(lambda: gate.requests, "the first search is under way")
        others = [threads.submit(found, corpus, query) for query in ("paper", "ink", "nothing") * 2]
        eventually(lambda: len(corpus._searches._waiting) == 6, "the others wait")
        gate.open.set()
    assert first.result() == ["a", "c"]
    assert [set(other.result()) for other in others] == [{"a", "b"}, {"a", "c"}, set()] * 2
    assert [path for _, path, _ in gate.requests] == [gate.requests[0][1]] * 2


def test_the_ranking_is_lucenes(search_server: Running, reach: Reach) -> None:
    if search_server.name == OSMEM:
        pytest.skip("osmem ranks otherwise than Lucene, and no real server is at hand")
    paragraphs = passages()
    corpus = made(reach(), paragraphs)
    asked = questions(paragraphs)[::8]
    results = [[hit.paragraph.id for hit in search(corpus, query, 10)] for query in asked]
    assert overlap(paragraphs, asked, results) >= 0.95


# Building.


def test_a_corpus_is_listed_with_what_the_index_says_of_itself(reach: Reach) -> None:
    store, told = reach(), list[int]()
    manifest = store.build("Wiki-2.0", [PAPER, INK, PEN], NewIndex(progress=told.append))
    assert (manifest.paragraphs, told) == (3, [3])
    assert {"cotrail", "lucene"} < set(manifest.created_by)
    assert store.open("Wiki-2.0").revision == manifest.revision
    assert store.manifests() == {"Wiki-2.0": manifest}
    with pytest.raises(UnknownNameError, match=r"no corpus 'other'; there are: Wiki-2\.0; "):
        store.open("other")
    with pytest.raises(InputError, match="can't be named"):
        store.build("a b", [PAPER])


def test_a_corpus_has_an_extent_until_it_is_removed(reach: Reach, names: Callable[[], list[str]]) -> None:
    store = reach()
    made(store)
    extent = store.extent("corpus")
    assert extent.bytes
    assert extent.built_at is not None
    assert [extent.location] == names()
    store.remove("corpus")
    assert (store.manifests(), names()) == ({}, [])
    for gone in (store.remove, store.extent):
        with pytest.raises(UnknownNameError, match="no corpus 'corpus'"):
            gone("corpus")


def test_the_revision_names_content_ids_and_order(reach: Reach) -> None:
    corpora = [[PAPER, INK], [PAPER, INK, PEN], [INK, PAPER], [PAPER, Paragraph(id="z", title="Ink", text=INK.text)]]
    revisions = [reach().build("corpus", paragraphs).revision for paragraphs in corpora]
    assert len(set(revisions)) == len(corpora)
    assert reach().build("other", [PAPER, INK]).revision == revisions[0]


def test_many_bulk_requests_bring_every_paragraph_once(
    gate: "Gate", reach: Reach, monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    monkeypatch.setattr(building, "BULK_BYTES", 500)
    paragraphs = [Paragraph(id=f"p{i}", title=f"Page {i}", text="plum " * (i % 20)) for i in range(200)]
    told: list[int] = []
    gate.faults = [None, None, None, 429, None, 503, "cut", "cut after"]
    manifest = reach(gate.url).build("corpus", paragraphs, NewIndex(progress=told.append))
    assert manifest.paragraphs == 200
    assert len(told) > 20
    assert told == sorted(told)
    assert told[-1] == 200
    assert gate.faults == []
    assert reach().open("corpus").paragraphs([each.id for each in paragraphs]) == {each.id: each for each in paragraphs}


def interrupted(error: BaseException) -> Iterator[Paragraph]:
    yield PAPER
    raise error


@pytest.mark.parametrize("error", [CorpusError("line 2"), KeyboardInterrupt()])
def test_a_build_that_fails_leaves_the_former_index_as_it_was(
    reach: Reach, error: BaseException, names: Callable[[], list[str]]
) -> None:
    former = made(reach(), [INK])
    before = names()
    with pytest.raises(type(error)):
        reach().build("corpus", interrupted(error))
    assert names() == before
    assert found(former, "ink") == ["a"]
    with pytest.raises(type(error)):
        reach().build("new", interrupted(error))
    assert names() == before


def test_a_killed_build_leaves_the_former_index_and_the_next_one_clears_up(
    reach: Reach, url: str, prefix: str, names: Callable[[], list[str]]
) -> None:
    former = made(reach(), [INK])
    script = (
        "import os, pathlib, signal, sys\n"
        "from cotrail.core.questions import Paragraph\n"
        "from cotrail.engines.retrieval.search_server import SearchServer\n"
        "from cotrail.engines.retrieval.stores import corpus_store\n"
        "def paragraphs():\n"
        "    yield Paragraph(id='x', title='X', text='x')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "store = corpus_store(pathlib.Path(), SearchServer(urls=(sys.argv[1],), prefix=sys.argv[2]))\n"
        "store.build('corpus', paragraphs())\n"
    )
    assert subprocess.run([sys.executable, "-c", script, url, prefix]).returncode == -signal.SIGKILL
    assert found(former, "ink") == ["a"]
    assert found(reach().open("corpus"), "ink") == ["a"]
    assert len(names()) == 2
    assert list(reach().manifests()) == ["corpus"]
    reach().build("corpus", [PEN])
    assert len(names()) == 1


def test_of_two_builds_the_later_one_goes_on(reach: Reach, names: Callable[[], list[str]]) -> None:
    def overtaken() -> Iterator[Paragraph]:
        yield INK
        reach().build("corpus", [PEN])

    with pytest.raises(CorpusError, match="another process"):
        reach().build("corpus", overtaken())
    assert found(reach().open("corpus"), "ink") == ["c"]
    assert len(names()) == 1


def test_nobody_writes_to_a_corpus_once_it_is_whole(reach: Reach, url: str, names: Callable[[], list[str]]) -> None:
    made(reach())
    with pytest.raises(CotrailError, match="block"):
        client.ElasticsearchClient(SearchServer(urls=(url,))).ask(
            lambda api: api.index(index=names()[0], id="1", document={"id": "a"})
        )


def test_the_same_paragraphs_indexed_again_are_searched_on(reach: Reach) -> None:
    corpus = made(reach())
    reach().build("corpus", [PAPER, INK, PEN])
    assert found(corpus, "ink") == ["a", "c"]


def test_other_paragraphs_in_their_place_are_an_error_that_blocks(reach: Reach) -> None:
    corpus = made(reach())
    reach().build("corpus", [PAPER, INK])
    with pytest.raises(CorpusChangedError, match="cotrail resume"):
        search(corpus, "ink", 2)


def test_an_index_of_another_making_asks_for_a_new_one(reach: Reach, url: str, prefix: str) -> None:
    client.ElasticsearchClient(SearchServer(urls=(url,))).ask(lambda api: api.indices.create(index=f"{prefix}corpus"))
    with pytest.raises(CorpusError, match="cotrail index"):
        reach().open("corpus")


def test_the_command_line_indexes_into_the_server(
    url: str, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COTRAIL_SEARCH_URL", url)
    monkeypatch.setenv("COTRAIL_SEARCH_PREFIX", prefix)
    settings.cache_clear()
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b"\n".join(msgspec.json.encode(paragraph) for paragraph in (PAPER, INK, PEN)))
    result = CliRunner().invoke(app, ["index", str(path), "--name", "mine"])
    assert "Indexed 3 paragraphs as mine" in result.output
    assert found(corpora_of(settings()).open("mine"), "ink") == ["a", "c"]
    assert not (tmp_path / "home").exists()


def run(corpus: str, revision: str) -> RunPlan:
    """As far as a worker that searches looks at it."""
    binding = Binding(model="m", profile="fast", temperature=0.0, seed=0, corpora={corpus: revision})
    return RunPlan(
        id="r",
        system="one-step",
        system_version=1,
        settings={},
        shots={},
        binding=binding,
        model_name="m",
        embedder_name="",
        entailer_name="",
        batched=False,
        shared_in=None,
    )


def test_a_worker_searches_the_corpus_that_its_run_pins_and_no_other(
    reach: Reach, url: str, prefix: str, tmp_path: Path, impatient: None
) -> None:
    nodes = SecretStr(f"{url}, http://127.0.0.1:{free_port()}")
    own = Settings(home=tmp_path, search_url=nodes, search_prefix=prefix)
    engines = LoadedEngines(own)
    former = reach().build("corpus", [PAPER, INK]).revision
    assert found(engines.retriever(run("corpus", former)), "paper") == ["b", "a"]
    now = reach().build("corpus", [PEN, INK]).revision
    with pytest.raises(CorpusChangedError, match=former[:12]):
        search(engines.retriever(run("corpus", former)), "paper", 2)
    assert set(found(engines.retriever(run("corpus", now)), "ink")) == {"a", "c"}
    with pytest.raises(CorpusChangedError, match=former[:12]):
        engines.retriever(run("corpus", former))
    assert reach().build("corpus", [PAPER, INK]).revision == former
    assert found(engines.retriever(run("corpus", former)), "paper") == ["b", "a"]
    with pytest.raises(UnknownNameError, match="there are: corpus"):
        engines.retriever(run("other", former))


# Faults, and what stands before a server.

Fault = int | str | bytes | None


class Gate(ThreadingHTTPServer):
    """Hands requests on to a server; the first ones meet the faults instead, in their order.

    A fault is a status, the body of an answer, `cut` (the connection ends), `cut after` (it ends after the request was
    carried out), `hang` (until the gate is opened), `hold` (as `hang`, then handed on), or None for none.
    """

    daemon_threads = True

    def __init__(self, server: str) -> None:
        super().__init__(("127.0.0.1", 0), Passage)
        self.server = urlsplit(server).netloc
        self.faults: list[Fault] = []
        self.rewritten: Callable[[str, bytes], bytes] = lambda _path, body: body
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.open = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests are about."""


class Passage(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: Gate

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.requests.append((self.command, self.path, dict(self.headers)))
        fault = self.server.faults.pop(0) if self.server.faults else None
        if fault in {"hang", "hold"}:
            self.server.open.wait(60)
        if fault in {"hang", "cut"}:
            self.close_connection = True
        elif isinstance(fault, bytes):
            self.answer(200, fault)
        elif isinstance(fault, int):
            self.answer(fault, b"<html>sorry</html>")
        else:
            status, content = self.handed_on(self.server.rewritten(self.path, body))
            self.close_connection = fault == "cut after"
            if fault != "cut after":
                self.answer(status, content)

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

    def handed_on(self, body: bytes) -> tuple[int, bytes]:
        connection = HTTPConnection(self.server.server, timeout=60)
        kept = {"Content-Type": self.headers["content-type"]} if body else {}
        connection.request(self.command, self.path, body or None, kept)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content

    def answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "text/html" if status in {429, 503} else "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        """Nobody reads it."""


@pytest.fixture
def gate(url: str) -> Iterator[Gate]:
    with Gate(url) as own:
        thread = threading.Thread(target=own.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield own
        own.open.set()
        own.shutdown()
        thread.join()


@pytest.mark.parametrize("fault", [429, 502, 503, 504, "cut"])
def test_a_search_is_made_again_after_a_fault_that_passes(
    gate: Gate, reach: Reach, fault: Fault, impatient: None
) -> None:
    corpus = made(reach(gate.url))
    gate.faults = [fault] * 3
    assert found(corpus, "ink") == ["a", "c"]
    assert gate.faults == []


@pytest.mark.parametrize(
    ("fault", "said", "kind"),
    [
        (503, "503", UnavailableError),
        (429, "429", UnavailableError),
        ("cut", "doesn't answer", UnavailableError),
        (500, "500", TransientStepError),
        (b"hello", "as no Elasticsearch", TransientStepError),
    ],
)
def test_a_server_that_is_away_is_told_from_one_that_fails(
    gate: Gate, reach: Reach, fault: Fault, said: str, kind: type[CotrailError], impatient: None
) -> None:
    corpus = made(reach(gate.url))
    gate.faults = [fault] * 100
    with pytest.raises(kind, match=rf"127\.0\.0\.1:\d+.* {said}"):
        search(corpus, "ink", 2)
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1"):
        corpus.titled("Ink")


@pytest.mark.parametrize("met", ["opening", "searching"])
def test_while_the_server_is_away_steps_are_held_back_and_no_try_is_counted(
    met: str,
    gate: Gate,
    reach: Reach,
    prefix: str,
    tmp_path: Path,
    engine: Engine,
    query: Query,
    impatient: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    revision = made(reach(gate.url)).revision
    binding = replace(submission().binding, corpora={"corpus": revision})
    database = SecretStr(engine.url.render_as_string(hide_password=False))
    here = Runtime(Settings(home=tmp_path, database_url=database, search_url=SecretStr(gate.url), search_prefix=prefix))
    monkeypatch.setattr(step, "current_runtime", lambda: here)
    if met == "searching":
        here.engines.retriever(run("corpus", revision))
    gate.faults = ["cut"] * 1000
    for message in begin(engine, 3, binding=binding):
        step.perform(message, step.carry_out)
    assert query(select(attempts.c.outcome)) == [{"outcome": "unavailable"}]
    gate.faults = []
    here.breaker.succeeded("the corpus corpus")
    with engine.begin() as connection:
        connection.execute(update(steps).values(not_before=None))
    for message in unsent(engine):
        step.perform(message, step.carry_out)
    here.stop()
    here.close()
    states = select(steps.c.state).where(steps.c.kind == "retrieve")
    assert query(states) == [{"state": "finished"}] * 3


def test_a_server_that_hangs_is_not_waited_for(
    gate: Gate, reach: Reach, monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    made(reach(gate.url))
    monkeypatch.setattr(client, "REQUEST_SECONDS", 0.5)
    corpus = reach(gate.url).open("corpus")
    gate.faults = ["hang"] * client.ATTEMPTS
    with pytest.raises(UnavailableError, match="timed out"):
        search(corpus, "ink", 2)
    assert found(corpus, "ink") == ["a", "c"]


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_refuses_the_user_asks_a_person(gate: Gate, reach: Reach, status: int) -> None:
    gate.faults = [status] * 2
    with pytest.raises(InputError, match="COTRAIL_SEARCH_API_KEY"):
        reach(gate.url).open("corpus")
    with pytest.raises(InputError, match=f"{status} .*sorry"):
        reach(gate.url).build("corpus", [INK])


def test_a_refused_search_fails_its_step_for_good(gate: Gate, reach: Reach) -> None:
    corpus = made(reach(gate.url))
    gate.faults = [400]
    with pytest.raises(StepError, match="400"):
        search(corpus, "ink", 2)


def test_a_request_that_is_too_large_says_what_to_raise(gate: Gate, reach: Reach) -> None:
    gate.faults = [None, None, None, 413]
    with pytest.raises(CorpusError, match=r"http\.max_content_length"):
        reach(gate.url).build("corpus", [INK])


def test_what_is_no_search_server_is_said_to_be_none(gate: Gate, reach: Reach) -> None:
    gate.faults = [200]
    with pytest.raises(UnavailableError, match="no Elasticsearch or OpenSearch"):
        reach(gate.url).open("corpus")


def bulked(*statuses: int) -> bytes:
    """An answer to a bulk request, an item for each status."""
    fault = {"type": "mapper_parsing_exception", "reason": "failed to parse"}
    items = [{"index": {"status": status} | ({"error": fault} if status >= 400 else {})} for status in statuses]
    return msgspec.json.encode({"errors": True, "items": items})


def test_a_paragraph_that_the_server_does_not_take_is_named(
    gate: Gate, reach: Reach, names: Callable[[], list[str]]
) -> None:
    gate.faults = [None, None, None, bulked(201, 400, 201)]
    with pytest.raises(CorpusError, match=r"paragraph 'a' \(mapper_parsing_exception: failed to parse\)"):
        reach(gate.url).build("corpus", [PAPER, INK, PEN])
    assert names() == []


def test_paragraphs_that_a_busy_server_does_not_take_are_sent_again(gate: Gate, reach: Reach, impatient: None) -> None:
    gate.faults = [None, None, None, bulked(201, 429, 429), bulked(201, 201, 429)]
    assert found(made(reach(gate.url)), "ink") == ["a", "c"]
    assert gate.faults == []


PART: list[dict[str, Any]] = [
    {"hits": {"hits": []}, "timed_out": True},
    {"hits": {"hits": []}, "_shards": {"failed": 1}},
    {"error": {"type": "search_phase_execution_exception", "reason": None}, "status": 500},
]


@pytest.mark.parametrize("answer", PART)
def test_what_was_found_in_part_only_does_not_count(gate: Gate, reach: Reach, answer: dict[str, Any]) -> None:
    corpus = made(reach(gate.url))
    gate.faults = [msgspec.json.encode({"responses": [answer]})]
    with pytest.raises(TransientStepError, match="only a part"):
        search(corpus, "ink", 2)


def test_a_corpus_whose_parts_are_not_back_yet_is_away(gate: Gate, reach: Reach) -> None:
    corpus = made(reach(gate.url))
    fault = {"type": "search_phase_execution_exception", "reason": "all shards failed"}
    gate.faults = [msgspec.json.encode({"responses": [{"error": fault, "status": 503}]})]
    with pytest.raises(UnavailableError, match="all shards failed"):
        search(corpus, "ink", 2)


def test_a_query_of_too_many_words_fails_its_step_for_good(gate: Gate, reach: Reach) -> None:
    corpus = made(reach(gate.url))
    fault = {"type": "too_many_clauses", "reason": "maxClauseCount is set to 1024"}
    gate.faults = [msgspec.json.encode({"responses": [{"error": fault, "status": 400}]})]
    with pytest.raises(StepError, match=r"1024.*shorten"):
        search(corpus, "ink", 2)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_no_server_is_said_without_the_password(reach: Reach, impatient: None) -> None:
    store = reach(f"http://ada:hunter2@127.0.0.1:{free_port()}")
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:\d+.* doesn't answer.*COTRAIL_SEARCH_URL") as raised:
        store.open("corpus")
    assert "hunter2" not in str(raised.value)
    assert "hunter2" not in repr(SearchServer(urls=("http://ada:hunter2@host:9200",), api_key="hunter2"))


def test_of_several_nodes_the_living_ones_answer(reach: Reach, url: str, impatient: None) -> None:
    corpus = made(reach(f"http://127.0.0.1:{free_port()}", url))
    assert [found(corpus, "ink") for _ in range(4)] == [["a", "c"]] * 4


@pytest.mark.parametrize("address", ["search", "ftp://host:9200", "http://", "http://[::1"])
def test_an_address_that_is_none_is_refused(reach: Reach, address: str) -> None:
    with pytest.raises(InputError, match="COTRAIL_SEARCH_URL"):
        reach(address)


def test_only_media_types_that_every_server_takes_are_sent(gate: Gate, reach: Reach) -> None:
    corpus = made(reach(gate.url))
    assert found(corpus, "ink") == ["a", "c"]
    assert corpus.titled("Ink") == (INK,)
    names = ("accept", "content-type")
    sent = {(name, headers[name]) for _, _, headers in gate.requests for name in names if name in headers}
    plain = {"application/json", "application/x-ndjson", "text/plain,application/json"}
    assert {type_ for _, type_ in sent} <= plain
    assert {("accept", "application/json"), ("content-type", "application/x-ndjson")} <= sent


def test_users_and_keys_reach_the_server(gate: Gate, reach: Reach) -> None:
    reach(gate.url.replace("//", "//ada:hun%40ter2@")).manifests()
    reach(gate.url, api_key="a2V5").manifests()
    basic, key = (headers.get("authorization", headers.get("Authorization")) for _, _, headers in gate.requests)
    assert basic == "Basic " + base64.b64encode(b"ada:hun@ter2").decode()
    assert key == "ApiKey a2V5"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that signs itself, with its key in the same file."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl isn't installed")
    path = tmp_path_factory.mktemp("tls") / "own.pem"
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=own"
    address = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*make.split(), *address, "-keyout", path, "-out", f"{path}.crt"], check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


def test_tls_is_spoken_with_a_server_whose_authority_is_trusted_and_no_other(
    gate: Gate, reach: Reach, certificate: Path, tmp_path: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    gate.socket = context.wrap_socket(gate.socket, server_side=True, do_handshake_on_connect=False)
    secure = gate.url.replace("http:", "https:")
    assert found(made(reach(secure, ca=certificate)), "ink") == ["a", "c"]
    with pytest.raises(UnavailableError, match="COTRAIL_SEARCH_CA"):
        reach(secure).open("corpus")
    with pytest.raises(InputError, match="COTRAIL_SEARCH_CA"):
        reach(secure, ca=tmp_path / "nowhere.pem")


def test_the_folder_is_taken_where_no_server_is_named(tmp_path: Path) -> None:
    store = corpus_store(tmp_path, None)
    manifest = store.build("mine", [INK])
    assert store.manifests() == {"mine": manifest}
    assert store.open("mine").titled("Ink") == (INK,)


def test_a_folder_and_a_server_keep_corpora_side_by_side(url: str, prefix: str, reach: Reach, tmp_path: Path) -> None:
    store = corpus_store(tmp_path, SearchServer(urls=(url,), prefix=prefix))
    in_folder = NewIndex(engine="tantivy")
    manifests = {"here": store.build("here", [INK], new=in_folder), "there": store.build("there", [PEN, PAPER])}
    assert store.manifests() == manifests
    assert manifests["here"].engine == "tantivy"
    assert manifests["there"].engine in manifests["there"].created_by
    assert [found(store.open(name), "ink paper") for name in ("here", "there")] == [["a"], ["b", "c"]]
    assert store.extent("here").location == str(tmp_path / "here")
    with pytest.raises(UnknownNameError, match="there are: here, there"):
        store.open("elsewhere")
    with pytest.raises(UnknownNameError, match="there are: here, there"):
        store.remove("elsewhere")
    with pytest.raises(InputError, match="hides one in the folder"):
        store.build("there", [INK], new=in_folder)
    (other,) = {"elasticsearch", "opensearch"} - {manifests["there"].engine}
    with pytest.raises(InputError, match=f"the search server is {manifests['there'].engine}"):
        store.build("there", [INK], new=NewIndex(engine=other))
    with pytest.raises(InputError, match=r"search\.toml"):
        reach().build("there", [INK], new=NewIndex(settings={"number_of_shards": 2}))
    for name in ("here", "there"):
        store.remove(name)
    assert store.manifests() == {}
