"""Search tools of MCP servers as corpora: real servers, over standard input and output and over HTTP."""

import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from cotrail.core.ports.retriever import SearchRequest
from cotrail.engines.retrieval.mcp_search import McpCorpus
from cotrail.engines.retrieval.retrieve_server import manifest_of
from cotrail.engines.retrieval.search_server import McpSearch, read_search_file
from cotrail.engines.retrieval.stores import FolderStore, RemoteCorpora
from cotrail.errors import BlockedError, InputError, StepError, UnavailableError
from tests.cases import each_case
from tests.conftest import wait_until
from tests.faults.stacked import COTRAIL, environment_of, stacked

pytest.importorskip("mcp", reason="mcp isn't installed")

SERVER = '''
import os, sys, time
from mcp.server import MCPServer

made = MCPServer("inks", log_level="ERROR")
DOCUMENTS = [{"id": str(n), "title": f"Ink {n}", "text": f"Ink {n} is blue."} for n in range(9)]

@made.tool()
def search(query: str, k: int = 5) -> list[dict]:
    """Searches."""
    if query == "die":
        os._exit(3)
    if query == "wait":
        time.sleep(60)
    if query == "fail":
        raise ValueError("no such ink")
    return DOCUMENTS[:k] if query != "nothing" else []

@made.tool()
def told(q: str, lang: str) -> str:
    """Searches, and tells."""
    return f"Doc 1(Title: Ink) {q} in {lang}\\nDoc 2(Title: Pen) A pen."

if len(sys.argv) > 1:
    made.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    made.run("stdio")
'''


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    return path


def started(script: Path, **more: Any) -> McpCorpus:
    declared = {"command": (sys.executable, str(script)), "count": "k", "store": "text"} | more
    return McpCorpus("inks", McpSearch(**declared))


@contextmanager
def serving(script: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, str(script), str(port)], stderr=subprocess.DEVNULL) as server:
        try:
            wait_until(lambda: _open(port), "the server listens")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.terminate()


def _open(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def ids(corpus: McpCorpus, query: str, count: int = 3) -> list[str]:
    return [hit.paragraph.id for hit in corpus.search(SearchRequest(query=query, count=count))]


def test_a_tool_is_searched_over_both_transports_with_the_same_record(script: Path) -> None:
    with serving(script) as url:
        here, there = started(script), started(script, command=(), url=url)
        for corpus in (here, there):
            hits = corpus.search(SearchRequest(query="blue", count=2))
            assert [(hit.paragraph.title, hit.rank, hit.score) for hit in hits] == [
                ("Ink 0", 1, 1.0),
                ("Ink 1", 2, 0.5),
            ]
            assert ids(corpus, "nothing") == ids(corpus, "  ") == []
            corpus.interrupt()


def test_texts_are_read_as_documents_and_further_arguments_are_sent(script: Path) -> None:
    corpus = started(script, tool="told", query="q", count="", arguments={"lang": "en"})
    hits = corpus.search(SearchRequest(query="blue", count=5))
    assert [(hit.paragraph.title, hit.paragraph.text) for hit in hits] == [("Ink", "blue in en"), ("Pen", "A pen.")]


def test_a_tool_that_fails_or_is_not_there_fails_the_step(script: Path) -> None:
    corpus = started(script)
    with pytest.raises(StepError, match="failed: Error executing tool search; look at"):
        ids(corpus, "fail")
    with pytest.raises(StepError, match="'nowhere'"):
        ids(started(script, tool="nowhere"), "blue")
    with pytest.raises(StepError, match="takes no look-ups of titles"):
        corpus.titled("Ink 0")
    assert ids(corpus, "blue") == ["0", "1", "2"]


def test_a_server_that_dies_hangs_or_is_not_there_is_away_and_found_again(script: Path) -> None:
    corpus = started(script, timeout_seconds=5.0)
    for query in ("die", "wait"):
        with pytest.raises(UnavailableError, match="doesn't answer"):
            ids(corpus, query)
        assert ids(corpus, "blue") == ["0", "1", "2"]
    with pytest.raises(UnavailableError, match="doesn't answer"):
        ids(started(script, command=(sys.executable, "-c", "import time; time.sleep(600)"), timeout_seconds=1.0), "x")
    left = [each for each in psutil.Process().children(recursive=True) if "time.sleep(600)" in " ".join(each.cmdline())]
    assert not left
    with pytest.raises(UnavailableError, match="doesn't answer"):
        ids(started(script, command=("no-such-program",)), "blue")
    with pytest.raises(UnavailableError, match="doesn't answer"):
        ids(started(script, command=(), url="http://127.0.0.1:9/mcp"), "blue")


@each_case(
    ("table", "said"),
    [
        ('store = "text"', "either the url of a server or the command"),
        ('url = "http://h/mcp"\ncommand = ["x"]\nstore = "text"', "either the url"),
        ('url = "http://h/mcp"', 'write store = "text"'),
        ('url = "ftp://h/mcp"\nstore = "text"', "that of an MCP server"),
    ],
)
def test_a_table_that_says_too_little_is_refused(table: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "search.toml").write_text(f"[mcp.inks]\n{table}\n")
    with pytest.raises(InputError, match=said):
        read_search_file(tmp_path / "search.toml")


def test_it_is_a_corpus_by_its_table(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = f'["{sys.executable}", "{script}"]'
    (tmp_path / "search.toml").write_text(f'[mcp.inks]\ncommand = {command}\nrevision = "v1"\nstore = "text"\n')
    found = read_search_file(tmp_path / "search.toml").remote
    corpora = RemoteCorpora(found, FolderStore(tmp_path))
    assert corpora.manifests()["inks"].analyzer == "a retrieval server's own: v1"
    assert len(corpora.open("inks").search(SearchRequest(query="blue", count=4))) == 4
    other = McpSearch(command=("x",), revision="v2", store="text")
    assert manifest_of(other).revision != corpora.manifests()["inks"].revision
    monkeypatch.delenv("INK_KEY", raising=False)
    with pytest.raises(BlockedError, match="INK_KEY holds no key"):
        McpCorpus("inks", McpSearch(url="http://127.0.0.1:9/mcp", key_variable="INK_KEY", store="text"))


def test_a_worker_searches_a_tool_that_it_starts() -> None:
    with tempfile.TemporaryDirectory(prefix="co-") as made:
        home = Path(made)
        (home / "server.py").write_text(SERVER)
        command = f'["{sys.executable}", "{home / "server.py"}"]'
        (home / "search.toml").write_text(f'[mcp.inks]\ncommand = {command}\ncount = "k"\nstore = "text"\n')
        script = {"name": "writer", "questions": {}, "default": {"answer": "blue", "sentences": ["blue"]}}
        (home / "script.json").write_text(json.dumps(script))
        (home / "models.toml").write_text('[models.scripted]\nengine = "scripted"\npath = "script.json"\n')
        environment = environment_of(home, {})
        with stacked(home, {}):
            subprocess.run([*COTRAIL, "up"], env=environment, cwd=home, check=True, capture_output=True)
            asked = subprocess.run(
                [*COTRAIL, "ask", "Which?", "--system", "one-step", "--corpus", "inks", "--json"],
                env=environment,
                cwd=home,
                capture_output=True,
                text=True,
            )
    assert asked.returncode == 0, asked.stderr
    assert "Ink 0 is blue." in asked.stdout
