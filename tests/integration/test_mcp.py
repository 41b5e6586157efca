"""Tools for agents, asked by the client of the protocol's own package: over standard input and output, and HTTP."""

import json
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.conftest import Eventually
from tests.faults.stacked import COTRAIL, environment_of, stacked
from tests.integration.planted import free_port

pytest.importorskip("mcp", reason="mcp isn't installed")

import mcp  # behind the check
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

PARAGRAPHS = [
    {"id": "ink", "title": "Ink", "text": "Ink is made in Vell."},
    {"id": "pen", "title": "Pen", "text": "Dry."},
]
SCRIPT = {"name": "writer", "questions": {}, "default": {"sentences": ["So the answer is: Vell."], "answer": "Vell"}}


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cm-") as made:
        yield from serving(Path(made))


def serving(home: Path) -> Iterator[Path]:
    (home / "corpus.jsonl").write_text("".join(json.dumps(each) + "\n" for each in PARAGRAPHS))
    (home / "script.json").write_text(json.dumps(SCRIPT))
    (home / "models.toml").write_text('[models.scripted]\nengine = "scripted"\npath = "script.json"\n')
    with stacked(home) as cotrail:
        cotrail("index", str(home / "corpus.jsonl"), "--name", "mine")
        cotrail("up")
        yield home


def called(transport: Any, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """What the tools answer, as JSON; an error as its text."""

    async def call() -> list[Any]:
        async with mcp.Client(transport) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == {
                "search",
                "get_document",
                "ask",
                "trace",
            }
            answers = [await client.call_tool(name, arguments) for name, arguments in calls]
            return [str(each.content) if each.is_error else each.structured_content for each in answers]

    return anyio.run(call)


def test_an_agent_that_starts_it_searches_reads_asks_and_traces(home: Path) -> None:
    parameters = StdioServerParameters(command=COTRAIL[0], args=[*COTRAIL[1:], "mcp"], env=environment_of(home))
    found, read, asked, unknown, missing = called(
        stdio_client(parameters),
        ("search", {"query": "where is ink made", "k": 1}),
        ("get_document", {"docid": "pen", "corpus": "mine"}),
        ("ask", {"question": "Where is ink made?"}),
        ("search", {"query": "ink", "corpus": "mien"}),
        ("get_document", {"docid": "nothing"}),
    )
    assert [each["docid"] for each in found["result"]] == ["ink"]
    assert read["text"] == "Dry."
    assert (asked["status"], asked["answer"]) == ("finished", "Vell")
    assert "there is no corpus 'mien'" in unknown
    assert "has no paragraph 'nothing'" in missing
    [traced] = called(stdio_client(parameters), ("trace", {"run": asked["run"]}))
    assert [step["kind"] for step in traced["steps"]][:2] == ["retrieve", "reason"]


def test_over_http_a_token_is_needed_and_says_what_may_be_done(home: Path, eventually: Eventually) -> None:
    environment, port = environment_of(home), free_port()
    made = [
        json.loads(
            subprocess.check_output([*COTRAIL, "token", "create", "agent", "--scope", scope, "--json"], env=environment)
        )
        for scope in ("read", "submit")
    ]
    url = f"http://127.0.0.1:{port}/mcp"
    with subprocess.Popen([*COTRAIL, "mcp", "--port", str(port)], env=environment) as served:
        try:
            eventually(lambda: answers(url), "it listens")
            assert httpx2.post(url, json={}).status_code == 401
            assert httpx2.post(url, json={}, headers={"Authorization": "Bearer cotrail_no_token"}).status_code == 401
            reads, submits = (streamable(url, each["secret"]) for each in made)
            taken = subprocess.run(
                [*COTRAIL, "mcp", "--port", str(port)], env=environment, capture_output=True, text=True
            )
            assert (taken.returncode, f"port {port} of 127.0.0.1 is taken" in taken.stderr) == (2, True)
            found, refused = called(reads, ("search", {"query": "ink"}), ("ask", {"question": "Where?"}))
            assert found["result"][0]["docid"] == "ink"
            assert "this needs a token with the scope submit" in refused
            [asked] = called(submits, ("ask", {"question": "Where is ink made?"}))
            assert asked["answer"] == "Vell"
        finally:
            served.terminate()


def answers(url: str) -> bool:
    try:
        return httpx2.get(url).status_code > 0
    except httpx2.HTTPError:
        return False


@asynccontextmanager
async def streamable(url: str, token: str) -> AsyncIterator[Any]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams
