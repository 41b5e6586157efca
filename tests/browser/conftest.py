"""A stack with runs whose every text tries to run a script, and a browser."""

import json
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import wait_until
from tests.faults.stacked import Cotrail, stacked

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>'
RIGHT_TO_LEFT = "أين ولدت آدا لورن؟"

QUESTIONS = {
    f"Where was the composer of The Drowned Bell born? {HOSTILE}": "Ysborg",
    "Which river flows through Ysborg?": "Lorn",
    RIGHT_TO_LEFT: "Ysborg",
}
PARAGRAPHS = [
    {
        "id": "p0",
        "title": f"The Drowned Bell {HOSTILE}",
        "text": f"The Drowned Bell is a ballet by Ada Lorn. {HOSTILE}",
    },
    {"id": "p1", "title": "Ada Lorn", "text": "Ada Lorn was born in Ysborg."},
    {"id": "p2", "title": "Ysborg", "text": "Ysborg lies on the river Lorn."},
]


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    # Not for longer: as long as Playwright runs, there is a running event loop, which other modules' tests can't have.
    pytest.importorskip("playwright", reason="Playwright isn't installed")
    from tests.browser.chromium import BINARY, launched

    if BINARY is None:
        pytest.skip("there is no Chromium here")
    with launched() as started:
        yield started


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cotrail-") as folder:
        made = Path(folder) / "home"
        made.mkdir()
        written = {
            question: {"sentences": [f"It was written by Ada Lorn. {HOSTILE}"], "answer": answer}
            for question, answer in QUESTIONS.items()
        }
        script = {"name": "writer", "questions": written, "default": {"answer": f"nobody {HOSTILE}"}}
        (made / "script.json").write_text(json.dumps(script))
        (made / "models.toml").write_text('[models.scripted]\nengine = "scripted"\npath = "script.json"\n')
        lines = [
            {"id": f"q{place}", "question": question, "answers": [answer], "gold": ["p1"]}
            for place, (question, answer) in enumerate(QUESTIONS.items())
        ]
        (made / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
        (made / "corpus.jsonl").write_text("\n".join(map(json.dumps, PARAGRAPHS)))
        yield made


@pytest.fixture(scope="module")
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def cotrail(home: Path, port: int) -> Iterator[Cotrail]:
    with stacked(home, {"COTRAIL_API_PORT": str(port)}, supervised=True) as run:
        run("up")
        run("index", str(home / "corpus.jsonl"), "--name", "mine")
        yield run


@pytest.fixture(scope="module")
def submit(home: Path, cotrail: Cotrail) -> Callable[..., str]:
    """Submits the questions to a system, with further options; returns the run's id."""

    def submitted(system: str, *options: str) -> str:
        questions = ["--dataset", "jsonl", "--questions", str(home / "questions.jsonl")]
        said = json.loads(cotrail("submit", "--system", system, *questions, "--corpus", "mine", *options, "--json"))
        return str(said["runs"][0]["run"] if "runs" in said else said["run"])

    return submitted


@pytest.fixture(scope="module")
def url(cotrail: Cotrail, port: int) -> str:
    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(listens, "the service listens")
    return f"http://127.0.0.1:{port}"
