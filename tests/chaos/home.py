"""A home with everything that runs under chaos need, and the runs themselves.

Three kinds of run: IRCoT and Search-in-the-Chain, whose model is behind a server that may have moods and die, the
latter in conversations; and Rethinking with Retrieval, whose models are scripted, with joins and all kinds of steps.
"""

import json
import random
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from tests.faults.scripts import MODELS, RUN, sample, scripts
from tests.faults.stacked import SAMPLE, Cotrail

SERVED = """
[models.served]
engine = "openai"
url = "http://127.0.0.1:{port}/v1"
model = "script"
context = 100000
timeout_seconds = 10
in_flight = 16

[models.conversing]
engine = "openai"
url = "http://127.0.0.1:{port}/v1"
model = "script"
api = "chat"
context = 100000
timeout_seconds = 10
in_flight = 16
"""
RETHINKING = RUN.replace('"questions.jsonl"', '"{questions}"')


class Home(Struct, frozen=True, kw_only=True):
    """A folder, and the port of the model server that belongs to it."""

    path: Path
    port: int

    @property
    def script(self) -> Path:
        return self.path / "script.json"

    @property
    def mood(self) -> Path:
        return self.path / "mood"

    def questions(self, rounds: int, count: int | None = None) -> Path:
        """A file with the sample's questions repeated `rounds` times, or the first `count` of these.

        A question's key is the sample's key with the number of the round appended.
        """
        path = self.path / f"questions-{rounds}-{count}.jsonl"
        asked = [{**q, "id": f"{q['id']}-{number}"} for number in range(rounds) for q in sample()][:count]
        path.write_text("\n".join(json.dumps(question) for question in asked))
        return path

    def submit(self, cotrail: Cotrail, system: str, questions: Path, *, model: str = "served") -> str:
        """Submits a run of a system; returns its id."""
        if system == "rethinking":
            file = questions.with_suffix(".toml")
            file.write_text(RETHINKING.replace("{questions}", str(questions)))
            options = [str(file)]
        else:
            named = "conversing" if system == "searchain" else model
            options = f"--system {system} --dataset jsonl --corpus sample --model {named}".split()
            options += ["--questions", str(questions)]
        if system != "searchain":  # which takes none
            options += ["--demonstrations", str(SAMPLE / "demonstrations.txt")]
        output = cotrail("submit", *options, "--json")
        return str(json.loads(output.splitlines()[-1])["run"])


@contextmanager
def made_home(prefix: str) -> Iterator[Home]:
    """A new folder with scripts and a list of models, and a free port; the folder is removed at the end."""
    home = Home(path=Path(tempfile.mkdtemp(prefix=prefix)), port=free_port())
    for name, content in scripts().items():
        (home.path / name).write_text(json.dumps(content))
    home.mood.write_text("ok")
    (home.path / "models.toml").write_text(MODELS + SERVED.format(port=home.port))
    try:
        yield home
    finally:
        shutil.rmtree(home.path)


def free_port() -> int:
    """A free port, of those that no connection gets by itself: whoever dies finds it free again."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no port is free")
