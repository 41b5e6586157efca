"""Corpora behind servers in Search-R1's form: one of ours in a process, and servers that answer as they are told to."""

# ruff: noqa: F401, F811 - fixtures are imported

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2", reason="httpx2 isn't installed")
pytest.importorskip("litestar", reason="litestar isn't installed")

import httpx2
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from cotrail.configuration.files import corpora_of
from cotrail.configuration.settings import settings
from cotrail.core.actions.registry import KINDS
from cotrail.core.ports.cancellation import Interrupted
from cotrail.core.questions import Paragraph
from cotrail.engines.language_models.served import client
from cotrail.engines.retrieval.engine import NewIndex
from cotrail.engines.retrieval.retrieve_server import ServedCorpus, read_request
from cotrail.engines.retrieval.search_server import RetrievalServer
from cotrail.engines.retrieval.stores import FolderStore, RemoteCorpora, open_index
from cotrail.engines.retrieval.tool_texts import Document, document_of, paragraph_of
from cotrail.errors import (
    BlockedError,
    CotrailError,
    InputError,
    StepError,
    TransientStepError,
    UnavailableError,
    UnknownNameError,
)
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import attempts, runs
from cotrail.models.schema.tables import questions as questions_
from cotrail.tasks.runtime import Runtime
from cotrail.tasks.step import carry_out, perform
from tests.cases import each_case
from tests.conftest import Eventually
from tests.integration.conftest import Cotrail, Query
from tests.integration.served import KEY, Served, answer, computed, verbatim
from tests.integration.stepping import unsent
from tests.integration.test_outages import make_due
from tests.integration.test_several_corpora import begin, find, home
from tests.searching import search
from tests.unit.docstrings import passages, questions

INK = {"id": "1", "contents": '"Ink"\nMade of soot.'}
PEN = {"id": "2", "contents": "Pen\nWrites with ink.\nOr not."}
BOTH = [{"document": INK, "score": 2.5}, {"document": PEN, "score": 1}]


@pytest.fixture
def corpus(served: Served) -> ServedCorpus:
    """One behind a server that finds both."""
    served.replies = [answer(200, {"result": [BOTH]})]
    return ServedCorpus("there", RetrievalServer(url=f"{served.url}/retrieve"))


def ids(hits: Any) -> list[str]:
    return [hit.paragraph.id for hit in hits]


# One of ours.


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a served corpus, which ends cleanly, and the folder of its index."""
    home = tmp_path_factory.mktemp("home")
    FolderStore(home / "corpora").build("mine", passages()[:3000])
    command = [sys.executable, "-m", "cotrail.cli.main", "serve-corpus", "mine", "--port", "0"]
    environment = os.environ | {"COTRAIL_HOME": str(home), "COLUMNS": "400"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert said.startswith("mine is served at http://127.0.0.1:")
        assert "curl" in process.stderr.readline()
        yield said.split()[4], home / "corpora" / "mine"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""


def test_a_served_corpus_finds_what_the_corpus_itself_does(address: tuple[str, Path]) -> None:
    url, folder = address
    here, there = open_index(folder), ServedCorpus("there", RetrievalServer(url=url))
    for query in (*questions(passages()[:3000])[:60], "a", 'quotes " and \n breaks', "\ud800 half", ""):
        for count in (1, 7, 200):
            assert search(there, query, count) == search(here, query, count)
    assert search(there, "a server's socket", 5, distinct=True) == search(here, "a server's socket", 5, distinct=True)
    best = search(here, "a server's socket", 50)
    kept = search(there, "a server's socket", 50, (best[3].paragraph.title.upper(),), scope="after")
    assert best[3].paragraph in [hit.paragraph for hit in kept]
    assert [hit.rank for hit in kept] == list(range(1, len(kept) + 1))


def test_many_queries_are_answered_in_their_order(address: tuple[str, Path]) -> None:
    url, folder = address
    asked = questions(passages()[:3000])[:64]
    for scores in (True, False):
        given = httpx2.post(url, json={"queries": asked, "topk": 4, "return_scores": scores}).json()["result"]
        for query, hits in zip(asked, given, strict=True):
            found = search(open_index(folder), query, 4)
            documents = [{"id": hit.paragraph.id, "contents": document_of(hit.paragraph).contents} for hit in found]
            expected = [{"document": each, "score": hit.score} for each, hit in zip(documents, found, strict=True)]
            assert hits == (expected if scores else documents)
    assert [len(each) for each in httpx2.post(url, json={"queries": ["server"]}).json()["result"]] == [3]
    assert httpx2.post(url, json={"queries": []}).json() == {"result": []}


@each_case(
    ("body", "said"),
    [
        (b"{", "isn't JSON"),
        (b"\xff", "isn't JSON"),
        (b"[" * 100_000, "isn't JSON"),
        (b'{"query": "a"}', "the key `queries` is missing"),
        (b'{"queries": "a"}', "`queries` must be a list"),
        (b'{"queries": ["a", 1]}', "queries"),
        (b'{"queries": ["a"], "topk": 0}', "`topk` must be a whole number from 1 to 1,000"),
        (b'{"queries": ["a"], "topk": 1001}', "`topk` must be a whole number from 1 to 1,000"),
        (b'{"queries": [' + b'"a",' * 1000 + b'"a"]}', "1,000 entries at most"),
        (b'{"queries": ["' + b"a" * 100_001 + b'"]}', "100,000 characters at most"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_bad_request_is_refused_with_what_to_do(address: tuple[str, Path], body: bytes, said: str) -> None:
    refused = httpx2.post(address[0], content=body)
    assert refused.status_code == 400
    assert said in refused.json()["detail"]


def test_other_paths_lead_to_those_there_are(address: tuple[str, Path]) -> None:
    url, folder = address
    health = httpx2.get(url.replace("/retrieve", "/health")).json()
    assert health == {"corpus": "mine", "revision": open_index(folder).revision}
    for status, refused in {
        404: httpx2.post(url + "r", json={}),
        405: httpx2.get(url),
        413: httpx2.post(url, content=b" " * 11_000_000),
    }.items():
        assert refused.status_code == status
        assert "POST /retrieve takes" in refused.json()["detail"]


def test_a_port_that_is_taken_is_said_to_be(cotrail: Cotrail, home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"port {port} of 127.0.0.1 is taken" in str(cotrail("serve-corpus", "rivers", "--port", port).exception)
    refused = cotrail("serve-corpus", "rivers", "--host", "no host")
    assert "port 8000 of no host can't be used" in str(refused.exception)
    assert "rivers" in str(cotrail("serve-corpus", "river").exception)


# Paragraphs as documents.

LINES = st.text(st.characters(exclude_characters="\n\0", codec="utf-8"))


@given(
    st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1),
    LINES,
    st.text().filter(lambda text: "\0" not in text and text.isprintable()),
)
def test_a_paragraph_comes_back_as_it_was(id_: str, title: str, text: str) -> None:
    paragraph = Paragraph(id=id_, title=title, text=text)
    assert paragraph_of(document_of(paragraph)) == paragraph


@each_case(
    ("contents", "title", "text"),
    [
        ('"Ink"\nMade of soot.', "Ink", "Made of soot."),
        ("Ink\nMade\nof soot.", "Ink", "Made\nof soot."),
        ('"Ink" (colour) \r\nMade.', '"Ink" (colour)', "Made."),
        ('"\nx', '"', "x"),
        ("Made of soot.", "", "Made of soot."),
        ("", "", ""),
        ("a\0\nb\0", "a\ufffd", "b\ufffd"),
    ],
)
def test_the_first_line_is_the_title(contents: str, title: str, text: str) -> None:
    paragraph = paragraph_of(Document(contents=contents))
    assert (paragraph.title, paragraph.text) == (title, text)
    assert paragraph.id == paragraph.digest[:32]
    assert paragraph_of(Document(id="", contents=contents)) == paragraph
    assert paragraph_of(Document(id=7, contents=contents)).id == "7"


@given(
    st.binary() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(lambda value: repr(value).encode())
)
def test_whatever_is_sent_is_read_or_refused(content: bytes) -> None:
    try:
        read_request(content)
    except InputError as error:
        assert str(error)  # noqa: PT017 - most of what is sent is refused


# Servers of others.


def test_a_server_is_asked_in_search_r1_s_form(corpus: ServedCorpus, served: Served) -> None:
    hits = search(corpus, "ink", 2)
    assert [(hit.rank, hit.score, hit.paragraph.title, hit.paragraph.text) for hit in hits] == [
        (1, 2.5, "Ink", "Made of soot."),
        (2, 1.0, "Pen", "Writes with ink.\nOr not."),
    ]
    [asked] = served.asked
    assert asked.path == "/v1/retrieve"
    assert asked.body == {"queries": ["ink"], "topk": 2, "return_scores": True}
    assert ids(search(corpus, "ink", 1)) == ["1"]
    assert ids(search(corpus, "ink", 9)) == ["1", "2"]
    assert search(corpus, " ", 9) == search(corpus, "ink", 0) == ()
    assert len(served.asked) == 3


def test_a_key_is_sent_and_one_that_is_missing_is_named(
    corpus: ServedCorpus, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = RetrievalServer(url=f"{served.url}/retrieve", key_variable="A_KEY")
    with pytest.raises(BlockedError, match="A_KEY holds no key"):
        ServedCorpus("there", server)
    monkeypatch.setenv("A_KEY", KEY)
    search(ServedCorpus("there", server), "ink", 1)
    assert served.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    served.replies = [answer(401, {"detail": f"no {KEY}"})]
    with pytest.raises(BlockedError, match=r"key_variable in search\.toml"):
        search(corpus, "ink", 1)


def test_documents_may_lack_scores_and_ids(corpus: ServedCorpus, served: Served) -> None:
    no_ids = [{"contents": each["contents"]} for each in (INK, PEN)]
    for found in (no_ids, [{"document": each} for each in no_ids]):
        served.replies = [answer(200, {"result": [found]})]
        hits = search(corpus, "ink", 5)
        assert [hit.score for hit in hits] == [1.0, 0.5]
        assert ids(hits) == [hit.paragraph.digest[:32] for hit in hits]


def test_equal_scores_are_in_the_order_of_ids_and_ids_come_once(corpus: ServedCorpus, served: Served) -> None:
    found = [
        {"document": {"id": id_, "contents": "x"}, "score": score}
        for id_, score in (("c", 2), ("b", 1), ("a", 1), ("c", 0))
    ]
    served.replies = [answer(200, {"result": [found]})]
    assert ids(search(corpus, "ink", 5)) == ["c", "a", "b"]
    assert ids(search(corpus, "ink", 5, distinct=True)) == ["b"]
    assert served.asked[-1].body["topk"] == 100


HIT: dict[str, Any] = {"document": INK, "score": 1}


@each_case(
    ("content", "said"),
    [
        ([], "Expected `object`"),
        ({"results": []}, "missing required field `result`"),
        ({"result": []}, "has 0 lists"),
        ({"result": [[], []]}, "has 2 lists"),
        ({"result": [HIT]}, r"\$.result\[0\]"),
        ({"result": [[{"score": 1}]]}, "hit 1 has neither"),
        ({"result": [[HIT, {"document": {"id": "2"}}]]}, r"contents` - at `\$.result\[0\]\[1\].document"),
        ({"result": [[HIT | {"score": "high"}]]}, "score"),
        ({"result": [[HIT | {"score": float("nan")}]]}, "malformed"),
        ({"result": [[HIT, {"document": PEN, "score": 2}]]}, "hit 2 has a higher score"),
        ({"result": [[{"document": {"id": [], "contents": ""}}]]}, "id"),
    ],
    ids=str,
)
def test_an_answer_in_another_form_says_what_is_wrong(
    corpus: ServedCorpus, served: Served, content: Any, said: str
) -> None:
    served.replies = [answer(200, content)]
    with pytest.raises(StepError, match=said) as error:
        search(corpus, "ink", 3)
    assert "[servers.there] of search.toml" in str(error.value)


@each_case(
    "content", [b"", b"<html>", b"\xff\xfe", b"[" * 100_000, b'{"result": [[{"contents": "", "score": 1e999}]]}']
)
def test_an_answer_that_is_no_answer_is_refused(corpus: ServedCorpus, served: Served, content: bytes) -> None:
    served.replies = [verbatim(content)]
    with pytest.raises(StepError, match="the form of search-r1"):
        search(corpus, "ink", 3)


def test_what_a_server_writes_is_bounded(corpus: ServedCorpus, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_STREAM_BYTES", 1000)
    served.replies = [answer(200, {"result": [BOTH], "more": "x" * 2000})]
    with pytest.raises(StepError, match="wrote more than"):
        search(corpus, "ink", 3)


def test_a_redirect_is_not_followed(corpus: ServedCorpus, served: Served) -> None:
    other = Served()
    served.replies = [answer(307, {}, {"Location": f"{other.url}/retrieve"})]
    with pytest.raises(BlockedError, match=r"into search\.toml"):
        search(corpus, "ink", 3)
    other.close()
    assert other.asked == []


@each_case(
    ("status", "kind"),
    [(503, UnavailableError), (429, UnavailableError), (500, TransientStepError), (422, StepError), (404, StepError)],
)
def test_a_refusal_is_an_error_of_its_kind(
    corpus: ServedCorpus, served: Served, status: int, kind: type[CotrailError]
) -> None:
    served.replies = [answer(status, {"detail": "said so"}, {"Retry-After": "0.01"})]
    with pytest.raises(kind, match=f"answered {status}: said so"):
        search(corpus, "ink", 3)


def test_a_server_that_goes_away_is_unavailable(corpus: ServedCorpus, served: Served) -> None:
    search(corpus, "ink", 3)
    served.close()
    with pytest.raises(UnavailableError, match="can't be reached"):
        search(corpus, "ink", 3)
    again = Served(served.port)
    again.replies = [answer(200, {"result": [BOTH]})]
    assert ids(search(corpus, "ink", 3)) == ["1", "2"]
    again.close()


def test_an_answer_that_breaks_off_is_tried_again_later(corpus: ServedCorpus, served: Served) -> None:
    def half(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"result": [')
        handler.close_connection = True

    served.replies = [half]
    with pytest.raises(TransientStepError, match="broke off"):
        search(corpus, "ink", 3)


def test_what_a_server_can_not_do_is_refused_by_name(corpus: ServedCorpus, served: Served) -> None:
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: search(corpus, "ink", 3, ("Ink",)), "searches of titles"),
        (lambda: search(corpus, "ink", 3, field="title"), "searches of titles"),
        (lambda: search(corpus, "ink", 3, retriever="dense"), "no option 'retriever'"),
        (lambda: corpus.titled("Ink"), "look-ups of titles"),
        (lambda: corpus.paragraphs(["1"]), "look-ups of paragraphs"),
    ]
    for ask, said in refused:
        with pytest.raises(StepError, match=said):
            ask()
    assert corpus.paragraphs([]) == {}
    assert served.asked == []
    assert ids(search(corpus, "ink", 3, ("PEN ",), scope="after")) == ["2"]


def test_a_search_ends_where_its_worker_does(corpus: ServedCorpus) -> None:
    corpus.interrupt()
    with pytest.raises(Interrupted):
        search(corpus, "ink", 3)


# Among other corpora.


def test_the_revision_is_the_users_word_or_the_address() -> None:
    word, moved = (
        ServedCorpus("a", RetrievalServer(url=f"http://{host}/retrieve", revision="wiki-18")) for host in "ab"
    )
    by_address = [ServedCorpus("a", RetrievalServer(url=f"http://{host}/retrieve")) for host in "ab"]
    assert word.revision == moved.revision
    assert len({word.revision, *(each.revision for each in by_address)}) == 3


def test_servers_are_found_among_the_folders_corpora_and_are_only_read(tmp_path: Path) -> None:
    folder = FolderStore(tmp_path)
    store = RemoteCorpora({"there": RetrievalServer(url="http://127.0.0.1:1/retrieve")}, folder)
    store.build("mine", [Paragraph(id="1", title="Ink", text="Made of soot.")])
    assert list(store.manifests()) == ["mine", "there"]
    assert (store.manifests()["there"].paragraphs, store.manifests()["there"].engine) == (None, "search-r1")
    assert store.extent("there").location == "http://127.0.0.1:1/retrieve"
    assert store.extent("mine").bytes
    assert store.open("mine").revision == folder.open("mine").revision
    with pytest.raises(UnknownNameError, match="mine, there"):
        store.open("x")
    with pytest.raises(InputError, match="take another name"):
        store.build("there", [], NewIndex(engine="tantivy"))
    with pytest.raises(InputError, match="take it out there"):
        store.remove("there")
    store.remove("mine")
    assert list(store.manifests()) == ["there"]


def test_it_takes_neither_a_search_server_nor_its_library(tmp_path: Path) -> None:
    (tmp_path / "search.toml").write_text('[servers.there]\nurl = "http://127.0.0.1:1/retrieve"\n')
    code = (
        "import sys; sys.modules['elasticsearch'] = None\n"
        "from cotrail.configuration.files import corpora_of\n"
        "from cotrail.configuration.settings import settings\n"
        "corpora = corpora_of(settings()); print(list(corpora.manifests()), corpora.open('there').revision)\n"
    )
    environment = {**os.environ, "COTRAIL_HOME": str(tmp_path)}
    environment.pop("COTRAIL_SEARCH_URL", None)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("['there'] ")


def declare(home: Path, served: Served) -> None:
    (home / "search.toml").write_text(f'[servers.there]\nurl = "{served.url}/retrieve"\nrevision = "two"\n')


def test_commands_show_it_and_search_it(home: Path, served: Served, cotrail: Cotrail) -> None:
    declare(home, served)
    served.replies = [answer(200, {"result": [BOTH]})]
    assert "Made of soot." in cotrail("search", "there", "ink").output
    assert "there" in cotrail("corpora").output
    shown = cotrail("corpora", "there").output
    assert "search-r1" in shown
    assert "a retrieval server's own: two" in shown
    assert "is only read" in str(cotrail("index", home / "seas.jsonl", "--name", "there").exception)


@pytest.mark.usefixtures("verified")
def test_a_run_searches_it_and_waits_while_it_is_away(
    engine: Engine,
    home: Path,
    served: Served,
    here: Runtime,
    sent: list[Dispatch],
    query: Query,
    eventually: Eventually,
) -> None:
    declare(home, served)
    served.close()
    run = begin(engine, home, corpora=["there", "notes"], settings={"searched": ["", "notes"]})
    ended = select(questions_.c.status, questions_.c.answer).where(questions_.c.run_id == run)

    def has_ended() -> bool:
        make_due(engine)
        for message in (*sent, *(each for kind in KINDS for each in unsent(engine, kind))):
            perform(message, carry_out)
        return bool(query(ended)[0]["status"] != "open")

    assert not has_ended()
    again = Served(served.port)
    again.replies = [answer(200, {"result": [BOTH]})]
    eventually(has_ended, "the question has ended")
    again.close()
    assert query(ended)[0]["answer"] == "1 n o n"
    outcomes = [each["outcome"] for each in query(select(attempts.c.outcome))]
    assert set(outcomes) == {"unavailable", "finished"}
    [row] = query(select(runs.c.corpus_revision).where(runs.c.id == run))
    assert row["corpus_revision"] == corpora_of(settings()).manifests()["there"].revision


def test_questions_with_gold_are_submitted_as_their_files_have_them(
    engine: Engine, home: Path, served: Served, query: Query
) -> None:
    declare(home, served)
    gold = '{"id": "q", "question": "Who?", "answers": ["r"], "gold": [%s]}'
    (home / "questions.jsonl").write_text(gold % '{"title": "Ink", "text": "Made of soot."}')
    assert begin(engine, home, corpora=["there"])
    assert begin(engine, home, corpora=["there", "rivers"])
    (home / "questions.jsonl").write_text(gold % '"1"')
    with pytest.raises(InputError, match="give title and text"):
        begin(engine, home, corpora=["there"])
    assert served.asked == []
