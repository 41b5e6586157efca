"""A server that writes digits without end: a real stack records them, keeps its leases and answers what follows."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from tests.conftest import Eventually
from tests.faults.stacked import SAMPLE, Cotrail, count, open_questions
from tests.homes import SCRIPTED, home_of
from tests.integration.served import Served, paused, piece, streamed

AT_ONCE = "1" * 6_000
ENDLESS = "1" * 1_000_000
PIECE = 50
UNTIL = "extract(epoch FROM max(lease_until)) * 1000"
SETTINGS = """
system = "ircot"
reader = "cot"
dataset = "jsonl"
questions = "questions.jsonl"
corpus = "sample"
demonstrations = "demonstrations.txt"
model = "served"

[settings]
max_sentence_tokens = 1_000_000
"""


@pytest.fixture(scope="module")
def released() -> threading.Event:
    """What the second half of the endless text waits for."""
    return threading.Event()


@pytest.fixture(scope="module")
def endless(released: threading.Event) -> Iterator[Served]:
    server = Served()
    pieces = [piece(ENDLESS[start : start + PIECE]) for start in range(0, len(ENDLESS), PIECE)]
    half = len(pieces) // 2
    over = [piece("", "length"), "[DONE]"]
    server.replies = [
        streamed([piece(AT_ONCE), *over]),
        streamed(paused(pieces[:half], released, [*pieces[half:], *over])),
        streamed([piece("So the answer is: Brenn.\n"), piece("", "stop"), "[DONE]"]),
    ]
    yield server
    released.set()
    server.close()


@pytest.fixture(scope="module")
def home(endless: Served) -> Iterator[Path]:
    """A home with that server's model and a run of two questions."""
    pytest.importorskip("httpx2", reason="httpx2 isn't installed")
    served = f'[models.served]\nengine = "openai"\nurl = "{endless.url}"\nmodel = "m"\ncontext = 100_000_000\n'
    files = {
        "script.json": {"name": "s", "questions": {}},
        "models.toml": SCRIPTED + served,
        "run.toml": SETTINGS,
        "demonstrations.txt": (SAMPLE / "demonstrations.txt").read_text(),
        "questions.jsonl": "".join((SAMPLE / "questions.jsonl").read_text().splitlines(keepends=True)[:2]),
    }
    with home_of(files) as made, pytest.MonkeyPatch.context() as patch:
        patch.setenv("COTRAIL_GENERATION_SLOTS", "1")
        yield made


def test_endless_digits_are_recorded_while_the_lease_is_renewed_and_both_questions_are_answered(
    cotrail: Cotrail, engine: Engine, home: Path, endless: Served, released: threading.Event, eventually: Eventually
) -> None:
    run = str(json.loads(cotrail("submit", str(home / "run.toml"), "--json").splitlines()[-1])["run"])

    def leased() -> int:
        return count(engine, run, f"SELECT coalesce({UNTIL}, 0) FROM steps WHERE run_id = :run AND state = 'running'")

    eventually(lambda: len(endless.generations) >= 2 and leased(), "the endless text is being written")
    first = leased()
    eventually(lambda: leased() > first, "the lease is renewed meanwhile")
    released.set()
    eventually(lambda: open_questions(engine, run) == 0, "both questions are answered")

    with engine.connect() as connection:
        answers = text("SELECT answer FROM questions WHERE run_id = :run")
        assert connection.execute(answers, {"run": run}).scalars().all() == ["Brenn", "Brenn"]
    written = "SELECT count(*) FROM sentences JOIN steps ON id = step_id WHERE run_id = :run AND text ~ '^1+$'"
    assert count(engine, run, written) == 2
    longest = "SELECT max(length(text)) FROM sentences JOIN steps ON id = step_id WHERE run_id = :run"
    assert count(engine, run, longest) == len(ENDLESS)
