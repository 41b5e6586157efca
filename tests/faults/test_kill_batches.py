"""`kill -9` of every process while a run is asked in batches, at a provider that fails now and then: every step has the
result of an undisturbed run, and every request was sent once.
"""

import json
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w
from sqlalchemy import Engine

from tests.batch_provider import Body, Provider
from tests.conftest import Eventually
from tests.faults.scripts import sample
from tests.faults.stacked import Cotrail, count, is_as_undisturbed, open_questions, process, steps_of
from tests.homes import home_of

SECONDS = 300
SEED = 7
"""Of the provider's faults."""

QUESTIONS = sample()[:12]
CHAINS = {question["question"]: question["chain"] for question in QUESTIONS}


def written(body: Body) -> str:
    """The next sentence of the chain that the prompt has the beginning of."""
    prompt = json.dumps(body["messages"], ensure_ascii=False)
    asked = max(CHAINS, key=prompt.rfind)
    so_far = prompt[prompt.rfind(asked) :]
    return next((sentence for sentence in CHAINS[asked] if sentence not in so_far), "")


class Faults:
    """A provider's faults, by a seed; rate: the share of requests that have one."""

    def __init__(self, rate: float = 0.0) -> None:
        self.rate = rate
        self._random = random.Random(SEED)

    def __call__(self, method: str, path: str) -> str | None:
        if self._random.random() >= self.rate:
            return None
        return self._random.choice(["503", "429", "500", "before", "after"])


@pytest.fixture(
    scope="module",
    params=["openai", *(pytest.param(name, marks=pytest.mark.slow(group=3)) for name in ("anthropic", "mistral"))],
)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def provider(form: str) -> Iterator[Provider]:
    made = Provider(written, Faults())
    yield made
    made.close()


@pytest.fixture(scope="module")
def home(form: str, provider: Provider) -> Iterator[Path]:
    api = "anthropic" if form == "anthropic" else "chat"
    table = {"engine": "openai", "url": provider.url, "model": "m", "api": api, "context": 8192, "batch": form}
    models = {"models": {"scripted": table | {"omits": ["stream"]}}}
    with home_of({"models.toml": tomli_w.dumps(models), "questions.jsonl": QUESTIONS}) as made:
        yield made


@pytest.fixture(scope="module")
def variables() -> dict[str, str]:
    """Lists of the provider don't lag here."""
    return {"COTRAIL_BATCH_RECOVERY_SECONDS": "1"}


def submit(cotrail: Cotrail, home: Path, *options: str) -> str:
    run = f"--system ircot --reader none --dataset jsonl --corpus sample --questions {home}/questions.jsonl --json"
    return str(json.loads(cotrail("submit", *run.split(), *options).splitlines()[-1])["run"])


def kill(cotrail: Cotrail, name: str) -> None:
    victim = process(cotrail, name)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait(10)
    cotrail("up")


@pytest.mark.timeout(900)
def test_every_request_of_a_run_in_batches_is_sent_once_whatever_is_killed(
    home: Path, cotrail: Cotrail, engine: Engine, eventually: Eventually, provider: Provider
) -> None:
    undisturbed = submit(cotrail, home)
    eventually(lambda: open_questions(engine, undisturbed) == 0, "the undisturbed run is finished", SECONDS)
    steps = steps_of(engine, undisturbed)
    live = len(provider.answered_live)
    provider.fault = Faults(0.1)
    run = submit(cotrail, home, "--serving", "batch")
    for wave, victims in enumerate((("generation",), ("redis", "maintenance", "generation"))):
        eventually(lambda least=wave: len(provider.batches) > least, f"wave {wave + 1} is sent", SECONDS)
        for name in victims:
            kill(cotrail, name)
    eventually(lambda: open_questions(engine, run) == 0, "the run in batches is finished", SECONDS)
    is_as_undisturbed(engine, run, steps)
    assert len(provider.answered_live) == live
    asked = count(engine, run, "SELECT count(*) FROM steps WHERE run_id = :run AND kind = 'reason'")
    lines = [line.rpartition("-")[2] for line in provider.lines]
    assert sorted(lines) == sorted(set(lines))
    assert len(lines) == asked
