"""`cotrail start` as a newcomer calls it: own documents, own questions and a model become a table and a page."""

import json
import os
import pty
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from cotrail.configuration.settings import Settings
from cotrail.workers.stack.stack import Stack
from tests.integration.test_demo import COTRAIL, read_until

MODELS = """
[models.scripted]
engine = "scripted"
path = "script.json"

[models.away]
engine = "openai"
url = "http://127.0.0.1:9/v1"
model = "away"
context = 4096
"""
DOCUMENTS = {
    "lighthouse.md": "# Sollen lighthouse\n\nThe Sollen lighthouse was built in 1871 by Marit Aune.\n",
    "aune.md": "# Marit Aune\n\nMarit Aune was an engineer born in Tarrow.\n",
}
QUESTION = "Where was the engineer of the Sollen lighthouse born?"


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """The folder of a user who has documents, and a model that knows one answer."""
    with tempfile.TemporaryDirectory(prefix="cs-") as made:
        kept = Path(made, ".local", "share", "cotrail")
        kept.mkdir(parents=True)
        script = {"name": "writer", "questions": {}, "default": {"answer": "Tarrow"}}
        (kept / "script.json").write_text(json.dumps(script))
        (kept / "models.toml").write_text(MODELS)
        notes = Path(made, "Notes of mine")
        notes.mkdir()
        for name, text in DOCUMENTS.items():
            (notes / name).write_text(text)
        yield Path(made)
        Stack(Settings(home=kept, database_url=None, broker_url=None)).remove()


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"], **more}


def start(home: Path, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [COTRAIL, "start", *words],
        env=environment(home, **more),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def test_three_options_lead_to_a_table_and_a_page_and_each_command_is_shown(home: Path) -> None:
    (home / "questions.jsonl").write_text(
        json.dumps({"id": "q1", "question": QUESTION, "answers": ["Tarrow"], "gold": ["aune.md#1"]}) + "\n"
    )
    done = start(home, "Notes of mine", "--questions", "questions.jsonl", "--model", "scripted")
    assert done.returncode == 0, done.stdout + done.stderr
    folder = home / "cotrail-notes-of-mine"
    shown = [line.partition("cotrail ")[2] for line in done.stdout.splitlines() if line.startswith("$ ")]
    assert shown == [
        "index 'Notes of mine' --name notes-of-mine",
        "up",
        "experiment run cotrail-notes-of-mine/experiment.toml",
        "experiment report notes-of-mine --output cotrail-notes-of-mine/report",
    ]
    assert "Which to take" in done.stdout
    assert "notes-of-mine/scripted/ircot" in done.stdout
    assert (folder / "report" / "report.html").is_file()
    kept = tomllib.loads((folder / "experiment.toml").read_text())
    assert [each["system"] for each in kept["systems"]] == ["no-retrieval", "one-step", "ircot"]

    again = start(home, "Notes of mine", "--questions", "questions.jsonl", "--model", "scripted")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "This start is called" not in again.stdout

    with (home / "questions.jsonl").open("a") as questions:
        questions.write(json.dumps({"id": "q2", "question": f"Once more: {QUESTION}", "answers": ["Tarrow"]}) + "\n")
    more = start(home, "Notes of mine", "--questions", "questions.jsonl", "--model", "scripted")
    assert more.returncode == 0, more.stdout + more.stderr
    assert "This start is called notes-of-mine-2" in more.stdout
    assert (home / "cotrail-notes-of-mine-2" / "report" / "report.html").is_file()


def test_a_start_elsewhere_leaves_the_corpus_of_another_one(home: Path) -> None:
    elsewhere = home / "elsewhere"
    (elsewhere / "Same").mkdir(parents=True, exist_ok=True)
    (elsewhere / "Same" / "a.md").write_text("# A\n\nAnother text.\n")
    indexed = [[COTRAIL, "index", str(home / "Notes of mine"), "--name", name] for name in ("same", "same-2")]
    for command in indexed:
        subprocess.run(command, env=environment(home), check=True, capture_output=True)
    (elsewhere / "q.jsonl").write_text(json.dumps({"question": QUESTION, "answers": ["Tarrow"]}) + "\n")
    words = [COTRAIL, "start", "Same", "--questions", "q.jsonl", "--model", "scripted"]
    options = {"cwd": elsewhere, "stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    refused = subprocess.run([*words, "--name", "same"], env=environment(home), **options)  # type: ignore[call-overload]
    assert refused.returncode == 2
    assert "there is a corpus same already; take another --name" in refused.stderr
    assert [each.name for each in elsewhere.iterdir() if each.name.startswith("cotrail")] == []
    done = subprocess.run(words, env=environment(home), **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    assert "This start is called same-3" in done.stdout


def test_on_a_terminal_it_asks_for_what_is_not_given(home: Path) -> None:
    terminal, inside = pty.openpty()
    command = [str(COTRAIL), "start", "--folder", "typed", "--name", "typed"]
    with subprocess.Popen(
        command, env=environment(home, TERM="xterm"), cwd=home, stdin=inside, stdout=inside, stderr=inside
    ) as asking:
        os.close(inside)
        for wanted, answer in (
            ("Documents: a folder or a file", "Notes of mine"),
            ("Model: a name of", "scripted"),
            ("question", QUESTION),
            ("answer", "Tarrow"),
            ("question", ""),
        ):
            read_until(terminal, wanted)
            os.write(terminal, f"{answer}\n".encode())
        written = read_until(terminal, "")
    os.close(terminal)
    assert asking.returncode == 0, written
    [line] = (home / "typed" / "questions.jsonl").read_text().splitlines()
    assert json.loads(line) == {"id": "q1", "question": QUESTION, "answers": ["Tarrow"]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no documents given: name a folder or a file, or `sample` as DOCUMENTS"),
        (("Notes of mine",), "no questions given"),
        (("nowhere",), "there is no nowhere"),
        (("sample", "--model", "gpt"), "there is no model 'gpt'"),
        (("sample", "--model", "away"), "127.0.0.1:9"),
        (("sample", "--model", "openai/gpt-5.1"), "OPENAI_API_KEY holds none"),
        (("Notes of mine", "--questions", "open.jsonl"), "has an answer, so nothing could be scored"),
        (("sample", "--folder", "questions.jsonl/x"), "can't be made"),
        (("sample", "--name", "my docs/ü"), "a corpus can't be named 'my docs/ü'"),
        (("Notes of mine", "--questions", "-"), "- can be read only once: write the questions to a file"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_started(home: Path, words: tuple[str, ...], said: str) -> None:
    (home / "open.jsonl").write_text(json.dumps({"id": "q1", "question": QUESTION}) + "\n")
    (home / "questions.jsonl").touch()
    refused = start(home, *words, COTRAIL_MODEL="scripted")
    assert refused.returncode == 2
    assert said in refused.stderr
    assert "$ " not in refused.stdout


def test_a_served_model_is_sent_one_request_before_anything_else(home: Path) -> None:
    received: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer({"data": [{"id": "mine"}]})

        def do_POST(self) -> None:
            received.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(401)
            self.end_headers()
            self.wfile.write(b'{"error": {"message": "no such key"}}')

        def answer(self, content: Mapping[str, object]) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        models = home / ".local" / "share" / "cotrail" / "models.toml"
        table = f'\n[models.keyless]\nengine = "openai"\nurl = "http://127.0.0.1:{server.server_port}/v1"\n'
        models.write_text(f'{MODELS}{table}model = "mine"\ncontext = 4096\napi = "chat"\n')
        refused = start(home, "sample", "--model", "keyless")
        server.shutdown()
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert "no such key" in refused.stderr
    assert received.count("/v1/chat/completions") == 1
    assert "$ " not in refused.stdout


def test_a_served_model_runs_in_the_profile_that_a_server_can_have(home: Path) -> None:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(b'{"data": [{"id": "mine"}]}')

        def do_POST(self) -> None:
            streams = json.loads(self.rfile.read(int(self.headers["Content-Length"]))).get("stream")
            choice = {"index": 0, "delta" if streams else "message": {"role": "assistant", "content": "Tarrow"}}
            content = json.dumps({"choices": [{**choice, "finish_reason": "stop"}], "model": "mine"}).encode()
            self.answer(b"data: " + content + b"\n\ndata: [DONE]\n\n" if streams else content, streams=bool(streams))

        def answer(self, content: bytes, *, streams: bool = False) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    (home / "one.jsonl").write_text(json.dumps({"question": QUESTION, "answers": ["Tarrow"]}) + "\n")
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        added = subprocess.run(
            [COTRAIL, "models", "add", "served", "--url", url], env=environment(home), capture_output=True, text=True
        )
        assert added.returncode == 0, added.stderr
        done = start(home, "Notes of mine", "--questions", "one.jsonl", "--model", "served", "--name", "served")
        server.shutdown()
    assert done.returncode == 0, done.stdout + done.stderr
    assert tomllib.loads((home / "cotrail-served" / "experiment.toml").read_text())["profile"] == "fast"
    assert "Which to take" in done.stdout


@pytest.mark.parametrize(
    ("status", "content", "said"),
    [
        (401, b'{"error": "no such key"}', "answered 401: .*no such key"),
        (500, b"broken", "answered 500: broken"),
        (200, b"<html>Welcome</html>", "answered something else than JSON"),
        (200, b'{"data": []}', "lists no model: name the one that it has with --model"),
        (
            200,
            json.dumps({"data": [{"id": f"m{n:03}"} for n in range(300)]}).encode(),
            "has 300 models: name one with --model, .*: m000, m001.* and 280 more",
        ),
    ],
)
def test_a_server_that_can_not_be_added_says_why(home: Path, status: int, content: bytes, said: str) -> None:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        refused = added(home, f"http://127.0.0.1:{server.server_port}/v1")
        server.shutdown()
    assert re.search(said, refused.stderr), refused.stderr
    assert (refused.returncode, "asking http" in refused.stderr) == (2, True)


def test_a_server_that_is_not_there_is_named(home: Path) -> None:
    assert "http://127.0.0.1:9/v1/models can't be reached" in added(home, "http://127.0.0.1:9/v1").stderr
    assert "/v1/models can't be reached" in added(home, "http://nobody.invalid:8000/v1").stderr


def added(home: Path, url: str) -> "subprocess.CompletedProcess[str]":
    command = [str(COTRAIL), "models", "add", "gone", "--url", url]
    return subprocess.run(command, env=environment(home), capture_output=True, text=True)
