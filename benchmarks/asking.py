"""How fast one question is answered beside the model's own time, idle and while evaluations fill the queues.

The whole local stack, the server over HTTP and a served model that takes a fixed time for each text, a word at a time.

    python -m benchmarks.asking benchmarks/results/asking.json
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx2

from benchmarks.machine import command, describe, versions
from tests.faults.stacked import ROOT, SAMPLE, Cotrail, environment_of, stacked

STEP_SECONDS = 0.2
"""How long the model takes for each text."""

WORDS = 10
QUESTION = "Where was the composer of the ballet The Drowned Bell born?"
TIMES = 10
QUEUED = 2000
"""Questions of the evaluation that fills the queues."""

SERVE = """
import sys
import uvicorn
from cotrail.workers import celery_app
uvicorn.run("cotrail.api.app:application", factory=True, port=int(sys.argv[1]), log_level="warning")
"""
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
MODEL = """
[models.timed]
engine = "openai"
api = "completions"
url = "{url}"
model = "timed"
context = 100000
revision = "1"
in_flight = 16
"""


class TimedServer:
    """A server of completions whose model writes the sample's chain, each text in the same time."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self.answered = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                body = b""
                if "content-length: " in head:
                    body = await reader.readexactly(int(head.partition("content-length: ")[2].split("\r\n")[0]))
                if "/completions" in head.split("\r\n")[0]:
                    await self._write(writer, json.loads(body)["prompt"])
                else:
                    writer.write(
                        b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
                    )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _write(self, writer: asyncio.StreamWriter, prompt: str) -> None:
        words = (next((text for text in CHAIN if text not in prompt), CHAIN[-1]) + "\n").split(" ")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        began = time.perf_counter()
        for place, word in enumerate(words):
            await asyncio.sleep(max(0.0, began + STEP_SECONDS * (place + 1) / len(words) - time.perf_counter()))
            last = place == len(words) - 1
            text = f" {word}" if place else word
            event = {"choices": [{"index": 0, "text": text, "finish_reason": "stop" if last else None}]}
            data = f"data: {json.dumps(event)}\n\n".encode()
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        data = b"data: [DONE]\n\n"
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n0\r\n\r\n")
        self.answered += 1


CHAIN = (
    "The music of the ballet The Drowned Bell was composed by Ines Korvin.",
    "Ines Korvin was born in Ysborg.",
    "So the answer is: Ysborg.",
)


def main(output: Path) -> None:
    """Measures, and writes the result."""
    with tempfile.TemporaryDirectory(prefix="cl-") as folder:
        home, model = Path(folder) / "home", TimedServer()
        home.mkdir()
        (home / "models.toml").write_text(MODEL.format(url=model.url))
        variables = {"COTRAIL_MODEL": "timed"}
        with stacked(home, variables, supervised=True) as cotrail:
            cotrail("up")
            cotrail("index", str(SAMPLE / "corpus.jsonl"), "--name", "sample")
            with serving(home, variables) as url:
                asked(url)
                idle = [asked(url) for _ in range(TIMES)]
                fill(cotrail, home, model)
                before, began = model.answered, time.perf_counter()
                full = [asked(url) for _ in range(TIMES)]
                rate = (model.answered - before) / (time.perf_counter() - began)
    result = {
        "command": command("benchmarks.asking"),
        "machine": describe(),
        "load": os.getloadavg(),
        "versions": versions("cotrail", "litestar", "uvicorn", "celery", "sqlalchemy"),
        "model_seconds_a_step": STEP_SECONDS,
        "queued_questions": QUEUED,
        "idle": summary(idle),
        "full_queue": summary(full) | {"model_steps_a_second": round(rate, 1)},
    }
    output.write_text(json.dumps(result, indent=1) + "\n")
    sys.stdout.write(json.dumps({name: result[name] for name in ("idle", "full_queue")}, indent=1) + "\n")


def asked(url: str) -> dict[str, float]:
    """Asks once; the milliseconds to the first event and to the first token, and those of a step beside the model's."""
    began, first, token, ends, generated = time.perf_counter(), 0.0, 0.0, [], 0
    body = {"question": QUESTION, "corpus": "sample", "model": "timed"}
    with httpx2.stream("POST", f"{url}/v1/ask", json=body, timeout=600) as response:
        for line in response.iter_lines():
            now = time.perf_counter() - began
            if line == "event: asked":
                first = now
            elif line == "event: token":
                token = token or now
            elif line == "event: answer":
                ends.append(now)
            elif line.startswith('data: {"event":"step"'):
                generated += '"kind":"retrieve"' not in line
                ends.append(now)
    steps = len(ends) - 1
    overhead = (ends[-1] - first - generated * STEP_SECONDS) / steps
    return {
        "first_event": first * 1000,
        "first_token": token * 1000,
        "overhead_a_step": overhead * 1000,
        "steps": steps,
    }


def fill(cotrail: Cotrail, home: Path, model: TimedServer) -> None:
    """Submits an evaluation, and waits until the model is busy with it."""
    lines = [json.loads(line) for line in (SAMPLE / "questions.jsonl").read_text().splitlines()]
    path = home / "many.jsonl"
    many = ({**lines[n % len(lines)], "id": f"q{n}"} for n in range(QUEUED))
    path.write_text("\n".join(map(json.dumps, many)))
    cotrail("submit", "--system", "ircot", "--dataset", "jsonl", "--questions", str(path), "--corpus", "sample")
    until = model.answered + 200
    while model.answered < until:
        time.sleep(0.05)


def summary(measured: list[dict[str, float]]) -> dict[str, Any]:
    """The median and the largest of each figure, in milliseconds."""
    return {
        name: {"median": round(median(values), 1), "largest": round(max(values), 1)}
        for name in measured[0]
        if (values := [each[name] for each in measured])
    }


@contextmanager
def serving(home: Path, variables: dict[str, str]) -> Iterator[str]:
    """The server's address, while it runs."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(port)], env=environment_of(home, variables), cwd=ROOT
    ) as api:
        try:
            while socket.socket().connect_ex(("127.0.0.1", port)):
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            api.terminate()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
