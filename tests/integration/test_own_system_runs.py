"""Runs by systems of strangers, of a file and of an installed package, and what becomes of them as these change."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.stacked import COTRAIL, environment_of, stacked

MINE = '''
import cotrail
from words import BEFORE

@cotrail.system
def mine(question, k: int = 2):
    """Search, then answer."""
    found = yield from cotrail.search(BEFORE + question.text, k)
    said = yield from cotrail.write(question.text, "\\nA:", max_tokens=20)
    return cotrail.Answer(text=f"{said}{len(found)}", paragraphs=found)
'''
PACKAGED = '''
import cotrail

def score(question):
    return float(question.written.endswith("1"))

METRIC = cotrail.Metric(name="ends_in_one", title="Ends", meaning="share that ends in 1", of="answer", score=score)

@cotrail.system(needs=cotrail.Needs())
def packaged(question):
    """Answer alone."""
    said = yield from cotrail.write(question.text)
    return cotrail.Answer(text=said + "1")
'''
SCRIPT = {"name": "writer", "questions": {}, "default": {"answer": "A", "sentences": ["A"]}}
MODELS = '[models.scripted]\nengine = "scripted"\npath = "script.json"\n'
QUESTIONS = [
    {"id": str(n), "question": f"Which ink is number {n}?", "answers": ["A2"], "gold": ["a"]} for n in range(3)
]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="co-") as made:
        home = Path(made)
        (home / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in QUESTIONS))
        (home / "corpus.jsonl").write_text(
            "".join(json.dumps({"id": n, "title": f"Ink {n}", "text": "Which ink is it?"}) + "\n" for n in "abc")
        )
        (home / "script.json").write_text(json.dumps(SCRIPT))
        (home / "models.toml").write_text(MODELS)
        (home / "work").mkdir()
        (home / "work" / "words.py").write_text('BEFORE = ""\n')
        (home / "work" / "mine.py").write_text(MINE)
        site = home / "site"
        (site / "strange-1.dist-info").mkdir(parents=True)
        (site / "strange-1.dist-info" / "METADATA").write_text("Name: strange\nVersion: 1\n")
        points = "[cotrail.systems]\npackaged = strange:packaged\n[cotrail.metrics]\nends = strange:METRIC\n"
        (site / "strange-1.dist-info" / "entry_points.txt").write_text(f"{points}[cotrail.datasets]\nbad = nothing:X\n")
        (site / "strange.py").write_text(PACKAGED)
        with stacked(home, variables(home)):
            run(home, "index", "corpus.jsonl", "--name", "mine")
            run(home, "up")
            yield home


def variables(home: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(home / "site")}


def run(home: Path, *arguments: str, code: int = 0, folder: str = "") -> str:
    done = subprocess.run(
        [*COTRAIL, *arguments],
        env=environment_of(home, variables(home)),
        cwd=home / folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout if code == 0 else done.stderr + done.stdout


MANY = ("--dataset", "jsonl", "--questions", "questions.jsonl", "--corpus", "mine")


def test_a_file_runs_and_goes_on_as_it_began_where_it_is_changed_or_deleted(home: Path) -> None:
    file = home / "work" / "mine.py"
    assert "A2" in run(home, "ask", "Which ink?", "--system", "mine.py", "--corpus", "mine", folder="work")
    first = run(home, "submit", "--system", "work/mine.py", *MANY, "--wait", "--json")
    assert "mine@" in first
    file.write_text(MINE.replace("k: int = 2", "k: int = 1"))
    second = run(home, "submit", "--system", "work/mine.py:mine", *MANY, "--wait", "--json")
    names = [json.loads(each.splitlines()[0])["run"] for each in (first, second)]
    file.unlink()
    scores = [json.loads(run(home, "score", each, "--json"))["metrics"] for each in names]
    assert [each["answer_em"] for each in scores] == [1.0, 0.0]
    for each in names:
        run(home, "audit", "verify", each)
        run(home, "replay", each)
    searched = json.loads(run(home, "score", names[1], "--searches", "--json"))
    assert [(each["search"], each["list"], each["questions"]) for each in searched] == [
        (None, "found", 3),
        (1, "found", 3),
    ]
    assert "Recall@5" in run(home, "score", names[1], "--searches")
    source = json.loads(run(home, "show", names[0], "--json"))["configuration"]["provenance"]["source"]
    assert source == {"mine.py": MINE, "words.py": 'BEFORE = ""\n'}
    assert "answer_em" in run(home, "compare", *names, "--json")
    (home / "run.toml").write_text('system = "work/nowhere.py"\ndataset = "jsonl"\nquestions = "questions.jsonl"\n')
    assert "there is no file" in run(home, "submit", "run.toml", code=2)


def test_a_package_brings_a_system_and_a_metric_and_blocks_where_it_changed(home: Path) -> None:
    assert "packaged" in run(home, "systems")
    done = subprocess.run(
        [*COTRAIL, "systems"], env=environment_of(home, variables(home)), cwd=home, capture_output=True, text=True
    )
    assert "the extension bad of the package strange can't be used (ModuleNotFoundError" in done.stderr
    [submitted] = run(home, "submit", "--system", "packaged", *MANY, "--wait", "--json").splitlines()[:1]
    name = json.loads(submitted)["run"]
    assert json.loads(run(home, "score", name, "--json"))["metrics"]["ends_in_one"] == 1.0
    run(home, "replay", name)
    (home / "site" / "strange.py").write_text(PACKAGED + "# changed\n")
    refused = run(home, "replay", name, code=1)
    assert "the text of the system packaged changed since the run was submitted" in refused
