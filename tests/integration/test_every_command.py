"""Every command asks the server that `--server` names, or says why it can't; none works on what is here instead."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cotrail.cli.lazy_group import COMMANDS, load
from cotrail.cli.main import app
from cotrail.configuration.settings import settings
from cotrail.errors import InputError
from tests.cases import each_case

SAID = "this server has been asked"

ASKED = """
annotate RUN
ask QUESTION
audit export RUN
audit prompt 1
audit verify RUN
cancel RUN
compare RUN OTHER
corpora
datasets
doctor
errors RUN
experiment report NAME
experiment run here.toml
experiment show
export RUN
fork RUN
index here.jsonl --name NAME
jobs
judge RUN
knowledge ask SOURCE TEXT
knowledge list
label RUN --name NAME
mcp
models
pause RUN
plan RUN
prioritize RUN 1
budget RUN --question-budget steps=100
project create NAME
project list
project set NAME --open-questions 1
prune RUN --yes
repeat RUN
replay RUN
report RUN --html there.html
resume RUN
rethinking RUN
retry RUN
runs
score RUN
search CORPUS QUERY
show RUN
submit here.toml
systems
token create NAME --scope read
token list
token revoke ID
trace RUN 1
verdicts RUN
view RUN
watch RUN
workers
"""
"""Commands that a server carries out."""

REFUSED = """
knowledge build wordnet
knowledge wikidata --fetch NAME --url http://127.0.0.1:9
"""
"""Commands of their groups that work on this machine alone."""


class Refusing(BaseHTTPRequestHandler):
    """Refuses each request in the same words."""

    def refuse(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        content = f'{{"type": "page#input", "detail": "{SAID}"}}'.encode()
        self.send_response(422)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = refuse  # noqa: N815 - their names

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without a store, with the files that commands name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    monkeypatch.setenv("COTRAIL_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    Path("here.jsonl").write_text('{"id": "1", "title": "a", "text": "b", "question": "c", "answers": ["d"]}\n')
    Path("here.toml").write_text('system = "zero-shot"\ndataset = "jsonl"\nquestions = "here.jsonl"\n')
    settings.cache_clear()
    yield
    settings.cache_clear()


def refusal(address: str, words: str) -> str:
    refused = CliRunner().invoke(app, ["--server", address, *words.split()])
    assert isinstance(refused.exception, InputError), (refused.exception, refused.output)
    return str(refused.exception)


def leaves(command: Any, path: str) -> Iterator[str]:
    """The commands below one, or itself where there are none."""
    below = getattr(command, "commands", {})
    for name, each in below.items():
        yield from leaves(each, f"{path} {name}")
    if not below:
        yield path


@each_case("words", ASKED.strip().splitlines())
def test_a_server_is_asked(address: str, words: str) -> None:
    assert refusal(address, words) == SAID


@each_case("words", REFUSED.strip().splitlines())
def test_what_works_here_alone_is_refused(address: str, words: str) -> None:
    assert "works on this machine alone" in refusal(address, words)


@each_case("entry", [each for each in COMMANDS if each.here], ids=lambda entry: entry.name)
def test_what_no_server_can_do_is_refused_with_the_reason(address: str, entry: Any) -> None:
    assert f"`cotrail {entry.name}` works on this machine alone, as {entry.here};" in refusal(address, entry.name)


def test_no_command_is_missing() -> None:
    served = [path for each in COMMANDS if not each.here for path in leaves(load(each), each.name)]
    tried = (ASKED + REFUSED).strip().splitlines()
    assert [path for path in served if not any(f"{words} ".startswith(f"{path} ") for words in tried)] == []
