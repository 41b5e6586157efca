"""Submissions over HTTP while `kill -9` hits the service and PostgreSQL in turn.

`python -m tests.chaos.service --submissions 200`: clients send each submission again under its `Idempotency-Key` until
it is accepted. At the end each key must have made one run, the one that was answered; whoever followed a run must have
read each of its steps once.
"""

import argparse
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import msgspec
from msgspec import Struct, field
from rich.console import Console
from sqlalchemy import Engine, text

from cotrail.client import Client
from cotrail.client.records import StepEnded
from cotrail.client.transport import RemoteTransport
from cotrail.configuration.settings import Settings
from cotrail.errors import CotrailError, UnavailableError
from cotrail.models.schema.database import connect
from cotrail.workers.stack.web import read_address
from tests.chaos.home import free_port
from tests.chaos.outages import outages
from tests.chaos.projects import LIMIT, prepare
from tests.conftest import wait_until
from tests.faults.stacked import SAMPLE, Cotrail, stacked

CLIENTS = 8

A_KILL, PAUSE_SECONDS = 5, 1.0
"""So many submissions are sent between two kills, and the most seconds between an answer and the next kill."""

SECONDS = 900
"""Seconds within which a submission must be accepted, and a run must end."""

AGAIN_SECONDS = 0.1
"""The pause before a request is sent again."""

ACCEPTABLE = {200, 201, 503}
"""The statuses of answers: done, or try again. Anything else, an error of the service's own above all, is wrong."""


class Trial(Struct, kw_only=True):
    """What happened, and what is wrong of it."""

    submissions: int
    kills: dict[str, int] = {}
    statuses: dict[str, int] = {}
    lost_connections: int = 0
    seconds: float = 0
    wrong: list[str] = field(default_factory=list)


class Submitter:
    """Sends submissions again and again until they are accepted; notes every answer.

    come: how much has come of the service, answers and events.
    """

    def __init__(self, url: str, questions: str) -> None:
        self.statuses: Counter[int] = Counter()
        self.lost = 0
        self.come = 0
        self.answered: dict[str, str] = {}
        self._url, self._questions = url, questions
        self._lock = threading.Lock()

    def submit(self, name: str) -> str:
        """Submit one; returns the id of its run. Raises TimeoutError where it isn't accepted in time."""
        until = time.monotonic() + SECONDS
        body = {"system": "one-step", "dataset": "jsonl", "corpus": "trial", "model": "scripted", "limit": LIMIT}
        request = {**body, "questions": self._questions, "name": name}
        with httpx2.Client(base_url=self._url, timeout=20) as http:
            while time.monotonic() < until:
                answer = self._sent(http, name, request)
                if answer is not None and answer.status_code == 201:
                    run = str(answer.json()["runs"][0]["run"])
                    with self._lock:
                        self.answered[name] = run
                    return run
                time.sleep(AGAIN_SECONDS)
        raise TimeoutError(f"{name} was never accepted")

    def follow(self, run: str) -> list[tuple[str, int]]:
        """Follow a run to its end; returns its steps, by question and number, as they were told."""
        until = time.monotonic() + SECONDS
        with Client(self._url) as client:
            while True:
                try:
                    return list(self._steps(client, run))
                except UnavailableError:  # where it isn't there from the beginning: later on, the client waits for it
                    if time.monotonic() > until:
                        raise
                    time.sleep(AGAIN_SECONDS)

    def _steps(self, client: Client, run: str) -> Iterator[tuple[str, int]]:
        for event in client.live.run_events(run):
            with self._lock:
                self.come += 1
            if isinstance(event, StepEnded):
                yield event.question, event.sequence

    def _sent(self, http: httpx2.Client, key: str, request: dict[str, Any]) -> httpx2.Response | None:
        try:
            answer = http.post("/v1/runs", json=request, headers={"Idempotency-Key": key})
        except httpx2.HTTPError:
            with self._lock:
                self.lost += 1
            return None
        with self._lock:
            self.statuses[answer.status_code] += 1
            self.come += answer.is_success
        return answer


def trial(submissions: int) -> Trial:
    """So many submissions, while the service and PostgreSQL are killed in turn."""
    home = Path(tempfile.mkdtemp(prefix="cv-"))
    try:
        with stacked(home, {"COTRAIL_API_PORT": str(free_port())}) as cotrail:
            prepare(home, cotrail)
            engine = connect(Settings(home=home, database_url=None).database)
            try:
                return _tried(home, cotrail, engine, submissions)
            finally:
                engine.dispose()
    finally:
        shutil.rmtree(home)


def _tried(home: Path, cotrail: Cotrail, engine: Engine, submissions: int) -> Trial:
    address, began = read_address(home / "api.json"), time.monotonic()
    assert address is not None
    with closing(RemoteTransport(address.url)) as transport:
        submitter = Submitter(address.url, transport.upload(str(SAMPLE / "questions.jsonl")))
    found = Trial(submissions=submissions)
    with outages(home, cotrail, lambda: submitter.come, PAUSE_SECONDS) as kills, ThreadPoolExecutor(CLIENTS) as clients:
        wrong = clients.map(partial(_follow, submitter, kills), range(submissions))
        found.wrong += [line for each in wrong for line in each]
    wait_until(lambda: _runs(engine, "digest IS NULL") == 0, "every run is finished and sealed", SECONDS)
    found.kills = dict(kills)
    found.statuses = {str(status): number for status, number in sorted(submitter.statuses.items())}
    found.lost_connections, found.seconds = submitter.lost, time.monotonic() - began
    found.wrong += [f"an answer had status {status}" for status in submitter.statuses if status not in ACCEPTABLE]
    found.wrong += _compared(engine, submitter)
    return found


def _follow(submitter: Submitter, kills: Counter[str], number: int) -> list[str]:
    """Submit one when it is its turn, and follow it to its end; returns what is wrong with what was read."""
    name = f"submission-{number}"
    wait_until(lambda: kills.total() >= number // A_KILL, "the kills before it are over", SECONDS)
    try:
        run = submitter.submit(name)
        steps = submitter.follow(run)
    except (CotrailError, TimeoutError) as error:
        return [f"{name}: {error}"]
    twice = [place for place, times in Counter(steps).items() if times > 1]
    whole = len({question for question, _ in steps}) == LIMIT
    return [f"{run}: step {place} was read twice" for place in twice] + ([] if whole else [f"{run}: steps are missing"])


def _compared(engine: Engine, submitter: Submitter) -> list[str]:
    """What is wrong with the runs that there are."""
    with engine.begin() as connection:
        rows = connection.execute(text("SELECT name, run_id FROM run_labels ORDER BY name")).all()
    made = Counter(name for name, _ in rows)
    wrong = [f"{name!r} made {times} runs" for name, times in made.items() if times != 1]
    wrong += [
        f"{name!r} was accepted as {run} and is lost"
        for name, run in submitter.answered.items()
        if (name, run) not in {(each.name, each.run_id) for each in rows}
    ]
    return wrong + [f"{number} runs too many" for number in [len(rows) - len(submitter.answered)] if number]


def _runs(engine: Engine, condition: str) -> int:
    with engine.begin() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM runs WHERE {condition}")).scalar_one())


def main() -> None:
    """Exits with 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.service", description=__doc__)
    parser.add_argument("--submissions", type=int, default=200, help="how many runs are submitted")
    parser.add_argument("--output", type=Path, help="a JSON file for the report")
    arguments = parser.parse_args()
    found = trial(arguments.submissions)
    console = Console(highlight=False)
    console.print(f"{found.submissions} submissions, each followed to its end; kills: {found.kills}")
    console.print(f"answers by status: {found.statuses}; {found.lost_connections} connections lost")
    console.print(f"{found.seconds:.0f} s; {len(found.wrong) or 'nothing'} wrong")
    console.print(*found.wrong, sep="\n", style="red", markup=False)
    if arguments.output:
        arguments.output.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
    sys.exit(bool(found.wrong))


if __name__ == "__main__":
    main()
