"""Makes a store with live runs, as the code of the day leaves it; later code must continue them.

`python -m tests.upgrades.making tests/upgrades/stores/FORMAT` at each release that has a new format of the record. The
workers are real and are killed in mid-run; the models are scripted, the searches real. What it leaves in the folder:
the files that the workers' home needs (`home`), and the whole database as SQL (`store.sql.xz`).
The stores begin with 1.0: what was written before was never released, and is refused.
"""

import json
import lzma
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import Engine, text

from cotrail.configuration.settings import Settings
from cotrail.models.schema.database import connect
from tests.conftest import wait_until
from tests.faults.stacked import SAMPLE, Cotrail, process, stacked
from tests.upgrades.keeping import FILE, dump

WORKERS = ("generation", "retrieval", "evidence")
MODELS = "\n".join(
    f'[{kind}.scripted]\nengine = "scripted"\npath = "{file}"\n'
    for kind, file in (("models", "script.json"), ("embedders", "similarities.json"), ("entailers", "judgements.json"))
)
IRCOT = """
system = "ircot"
dataset = "jsonl"
questions = "{questions}"
corpus = "sample"
model = "scripted"
demonstrations = "demonstrations.txt"
"""
RETHINKING = """
system = "rethinking"
dataset = "jsonl"
questions = "{questions}"
corpus = "sample"
model = "scripted"
embedder = "scripted"
entailer = "scripted"
demonstrations = "demonstrations.txt"
chains = 3
task = "temporal"
variant = "selection"

[settings]
knowledge = ["corpus"]
reading = {{reader = "none"}}
"""
EXPERIMENT = """
name = "grid"
readers = ["direct", "none"]
demonstration_sets = 1
demonstrations_per_set = 3
development_questions = 6
test_questions = 12

[grid]
ircot_counts = [1, 4]
one_step_counts = [1, 5]
distractors = [1]

[datasets.jsonl]
questions = "sample.jsonl"
corpus = "sample"
demonstrations = { cot = "demonstrations.txt" }
"""
ASKED = {"few": 6, "sample": 31, "many": 80, "rethought": 45}
"""The files of questions and their sizes; the sample's questions are repeated if they are too few."""

RUNS = {
    "finished": IRCOT.format(questions="few.jsonl"),
    "paused": IRCOT.format(questions="sample.jsonl"),
    "ircot": IRCOT.format(questions="many.jsonl"),
    "rethinking": RETHINKING.format(questions="rethought.jsonl"),
}
ADOPTED = "SELECT count(*) FROM steps WHERE shared_in IS NOT NULL AND adopted_from IS NOT NULL"
OPEN = """
    SELECT count(*) FROM questions JOIN runs ON runs.id = run_id
    WHERE status = 'open' AND runs.desired_state = 'active' AND run_id = '{run}'
"""
IN_THE_MIDDLE = """
    SELECT
        (SELECT count(*) FROM questions WHERE run_id = '{run}' AND status = 'finished') > 0
        AND count(*) FILTER (WHERE steps.state = 'finished') > 0
        AND count(*) FILTER (WHERE steps.state = 'ready') > 0
        AND count(*) FILTER (WHERE steps.state = 'running') > 0
    FROM steps JOIN questions ON questions.id = question_id
    WHERE steps.run_id = '{run}' AND status = 'open'
"""
HALF_A_BATCH = """
    SELECT count(*) FROM steps AS done JOIN steps AS other USING (question_id, created_at, kind)
    WHERE done.run_id = '{run}' AND done.state = 'finished' AND other.state IN ('ready', 'running')
"""


def main(folder: Path) -> None:
    """Lets runs begin, kills all their workers at once, and dumps the store."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "home").mkdir(parents=True)
    write_home(folder / "home")
    home = Path(tempfile.mkdtemp(prefix="cotrail-store-"))
    shutil.copytree(folder / "home", home, dirs_exist_ok=True)
    with stacked(home) as cotrail:
        cotrail("index", str(home / "corpus.jsonl"), "--name", "sample")
        shutil.copytree(home / "corpora", folder / "home" / "corpora")
        cotrail("up")
        engine = connect(Settings(home=home, database_url=None).database)
        runs = begin(home, cotrail, engine)
        engine.dispose()
        (folder / "runs.json").write_text(json.dumps(runs, indent=1) + "\n")
        (folder / FILE).write_bytes(lzma.compress(dump(home)))
    shutil.rmtree(home)


def write_home(home: Path) -> None:
    """The sample, repeated many times, scripted models that know its answers, and the runs to submit."""
    sample = [json.loads(line) for line in (SAMPLE / "questions.jsonl").read_text().splitlines()]
    # One of them has a sentence that ends in an initial.
    sample = [question for question in sample if question["id"] != "sample-25"]
    for name in ("corpus.jsonl", "demonstrations.txt"):
        shutil.copy(SAMPLE / name, home / name)
    for name, count in ASKED.items():
        asked = [{**sample[n % len(sample)], "id": f"{name}-{n}"} for n in range(count)]
        (home / f"{name}.jsonl").write_text("".join(json.dumps(question) + "\n" for question in asked))
    for name, content in scripts(sample).items():
        (home / name).write_text(json.dumps(content, indent=1) + "\n")
    for name, content in RUNS.items():
        (home / f"{name}.toml").write_text(content.lstrip())
    (home / "grid.toml").write_text(EXPERIMENT.lstrip())
    (home / "models.toml").write_text(MODELS)


def scripts(sample: Sequence[dict[str, Any]]) -> dict[str, object]:
    """The scripted models: facts are similar to their gold paragraphs and follow from them, and from nothing else."""
    titles = {p["id"]: p["title"] for p in map(json.loads, (SAMPLE / "corpus.jsonl").read_text().splitlines())}
    written: dict[str, object] = {}
    similarities: dict[str, dict[str, float]] = {}
    judgements: dict[str, dict[str, dict[str, float]]] = {}
    for question, other in zip(sample, [*sample[1:], sample[0]], strict=True):
        wrong = [question["chain"][0], f"{other['answers'][0]} is what it was.", other["chain"][-1]]
        written[question["question"]] = {
            "sentences": question["chain"],
            "answer": question["answers"][0],
            "samples": [" ".join(question["chain"]), " ".join(wrong), other["chain"][-1]],
        }
        for fact, gold in zip(question["chain"], question["gold"], strict=False):
            similarities.setdefault(fact, {})[titles[gold]] = 0.9
            judgements.setdefault(titles[gold], {})[fact] = {"entailment": 0.95}
    return {
        "script.json": {"name": "sample", "questions": written},
        "similarities.json": {"similarities": similarities, "default": 0.2},
        "judgements.json": {"judgements": judgements, "default": {"contradiction": 0.3}},
    }


def begin(home: Path, cotrail: Cotrail, engine: Engine) -> dict[str, str]:
    """Brings the store to the state that is dumped; returns the ids of its runs by their names."""
    runs = {"finished": submit(home, cotrail, "finished")}
    wait_until(lambda: not ask(engine, OPEN.format(run=runs["finished"])), "the first run is finished")
    conducting = subprocess.Popen(
        [sys.executable, "-m", "cotrail.cli.main", "experiment", "run", str(home / "grid.toml")],
        env={"COTRAIL_HOME": str(home), "COTRAIL_MODEL": "scripted"},
    )
    wait_until(lambda: ask(engine, ADOPTED) > 30, "steps are adopted")
    conducting.kill()
    conducting.wait()
    processes = [process(cotrail, name) for name in ("maintenance", *WORKERS)]
    _suspend(processes)
    runs["paused"] = submit(home, cotrail, "paused")
    wait_until(partial(_slice, engine, processes, [runs["paused"]]), "it is in the middle", 60)
    cotrail("pause", runs["paused"])
    runs |= {name: submit(home, cotrail, name) for name in ("ircot", "rethinking")}
    kill_in_the_middle(engine, processes, [runs["ircot"], runs["rethinking"]])
    return runs


def kill_in_the_middle(engine: Engine, processes: Sequence[psutil.Process], runs: Sequence[str]) -> None:
    """Kills suspended processes at a moment when both runs have steps in every state, and part of a batch is done."""

    def caught() -> bool:
        return _slice(engine, processes, runs) and bool(ask(engine, HALF_A_BATCH.format(run=runs[-1])))

    wait_until(caught, "both are in the middle", 60)
    for each in processes:
        each.kill()
        each.wait(10)


def _slice(engine: Engine, processes: Sequence[psutil.Process], runs: Sequence[str]) -> bool:
    """Lets suspended processes work for a moment; returns whether these runs then have steps in every state."""
    _resume(processes)
    time.sleep(0.05)  # a slice of work: what is caught is whatever they are in the middle of, which nothing signals
    _suspend(processes)
    return all(ask(engine, IN_THE_MIDDLE.format(run=run)) for run in runs)


def _suspend(processes: Sequence[psutil.Process]) -> None:
    for each in processes:
        each.suspend()


def _resume(processes: Sequence[psutil.Process]) -> None:
    for each in processes:
        each.resume()


def submit(home: Path, cotrail: Cotrail, name: str) -> str:
    """Submits one of `RUNS`; returns its id."""
    return str(json.loads(cotrail("submit", str(home / f"{name}.toml"), "--json").splitlines()[-1])["run"])


def ask(engine: Engine, query: str) -> int:
    """The number that a query returns."""
    with engine.begin() as connection:
        return int(connection.execute(text(query)).scalar_one())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
