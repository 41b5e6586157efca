"""Runs by systems of strangers, of a file and of an installed package, and what becomes of them as these change."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx2
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
ADDED = '''
import typer
from cotrail import Command, RunView
from cotrail.engines.language_models.catalogue import ScriptedModelTable
from cotrail.engines.models_file import ModelTable
from cotrail.systems.judge.rubric import Grade, Rubric

class Typed(ScriptedModelTable, frozen=True, tag="typed"):
    """A script, under another name."""

def greet(name: str, times: int = 1) -> None:
    """Greet somebody."""
    typer.echo(f"hello {name} " * times)

def asked(questions):
    if len(questions := list(questions)) != 3:
        raise ValueError("three, please")
    return "<p>" + ", ".join(each["question"] for each in questions) + "</p><script>alert(1)</script>"

GREET = Command(name="greet", run=greet)
ASKED = RunView(name="asked", title="What was asked", html=asked)
TYPED = ModelTable(kind="model", table=Typed)
KIND = Rubric(name="kind", title="kind", words="Is it kind? {answer}", verdicts=(
    Grade(name="yes", score=1), Grade(name="no", score=0)))
'''
SCRIPT = {"name": "writer", "questions": {}, "default": {"answer": "A", "sentences": ["A"]}}
MODELS = """
[models.scripted]
engine = "scripted"
path = "script.json"

[models.mine]
engine = "typed"
path = "script.json"
"""
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
        (home / "extensions").mkdir()
        (home / "extensions" / "added.py").write_text(ADDED)
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


def test_an_extension_brings_a_command_a_view_a_rubric_and_a_form_of_models(home: Path) -> None:
    assert run(home, "greet", "you", "--times", "2").split() == ["hello", "you", "hello", "you"]
    listed = run(home, "--help")
    assert "Greet somebody." in listed
    assert "Greet somebody." in run(home, "greet", "--help")
    assert "did you mean greet?" in run(home, "gret", "you", code=2)
    assert "typed" in run(home, "models", "mine")
    [submitted] = run(
        home, "submit", "--system", "one-step", *MANY, "--model", "mine", "--wait", "--json"
    ).splitlines()[:1]
    name = json.loads(submitted)["run"]
    service = run(home, "view", name).strip().removesuffix(f"/runs/{name}")
    page = httpx2.get(f"{service}/runs/{name}").text
    assert f"/runs/{name}/views/asked" in page
    view = httpx2.get(f"{service}/runs/{name}/views/asked").text
    assert "Which ink is number 0?, Which ink is number 1?" in view
    assert "<script>alert" not in view
    assert "there is no view" in httpx2.get(f"{service}/runs/{name}/views/nothing").text
    assert "by kind" in run(home, "judge", name, "--rubric", "kind", "--model", "mine", "--wait", code=4)
    assert "kind/mine" in run(home, "verdicts", name)
    (home / "extensions" / "more.py").write_text("import cotrail\nSHOW = cotrail.Command(name='show', run=print)\n")
    assert "the command show of an extension can't be used" in run(home, "shaw", code=2)
    (home / "extensions" / "more.py").write_text("import cotrail\nODD = cotrail.Command(name='\\x1b[31m', run=5)\n")
    assert "Greet" in run(home, "--help")
    (home / "extensions" / "more.py").write_text("raise OSError('no such luck')")
    assert "Greet" in run(home, "--help")
    assert name in run(home, "runs")
    (home / "extensions" / "more.py").unlink()


BY_WORKERS = """
import sys
import cotrail

first = {"id": "x", "question": "Which ink?", "answers": ["A1"]}
questions = [first, {"id": "y", "question": "Why?", "answers": ["A"]}]
told = []
for server in ("local", sys.argv[1], None):
    asked = cotrail.ask("one-step", "Which ink is number 0?", corpus="mine", server=server)
    answers = cotrail.run("one-step", questions, corpus="mine", server=server, progress=lambda *at: told.append(at))
    shown = "Which ink" in asked._repr_html_()
    print([asked.answer, len(asked.steps), shown, answers.scores["answer_em"], len(answers)])
    print([row["id"] for row in answers.rows()], bool(asked.run), told[-1])
of_file = cotrail.ask("one-step", "Which ink is number 0?", corpus="corpus.jsonl").row()
print(of_file == cotrail.ask("one-step", "Which ink is number 0?").row())  # of the corpus that isn't given here
try:
    cotrail.ask(lambda question: None, "Why?", server="local")
except cotrail.errors.InputError as error:
    print(error)
"""


def test_the_same_calls_are_answered_by_workers_here_and_behind_a_server(home: Path) -> None:
    run(home, "submit", "--system", "one-step", *MANY, "--wait")
    service = run(home, "view").strip()
    done = subprocess.run(
        [sys.executable, "-c", BY_WORKERS, service],
        env=environment_of(home, variables(home)),
        cwd=home,
        capture_output=True,
        text=True,
    )
    here, shown, there, as_well, alone, apart, same, refused = done.stdout.splitlines()
    assert here == there == alone == "['A', 2, True, 0.5, 2]", done.stderr
    assert shown == as_well == "['x', 'y'] True (2, 2)"
    assert apart == "['x', 'y'] False (2, 2)"
    assert same == "True"
    assert "put it into a file" in refused


ELSEWHERE = """
import sys
from cotrail.configuration.extensions import brings, load_extensions
from cotrail.configuration.settings import settings
from cotrail.core.questions import Question
from cotrail.models.records.runs import Runs
from cotrail.services.store import reading
from cotrail.systems.registry import find_system

load_extensions()
with reading() as connection:
    runs = Runs(find_system, brings(allowed=settings().stored_systems))
    system = runs.plan(connection, sys.argv[1]).open(Question(id="q", text="Why?"), find_system)
print(next(system()).query)
"""


def test_a_worker_elsewhere_takes_a_system_from_the_store_only_where_it_may(home: Path) -> None:
    (home / "work" / "mine.py").write_text(MINE)
    [submitted] = run(home, "submit", "--system", "work/mine.py", *MANY, "--wait", "--json").splitlines()[:1]
    name = json.loads(submitted)["run"]
    shutil.rmtree(home / "systems")
    command = [sys.executable, "-c", ELSEWHERE, name]
    lacking = environment_of(home, variables(home))
    refused = subprocess.run(command, env=lacking, cwd=home, capture_output=True, text=True)
    assert "is of a file that isn't kept here" in refused.stderr
    assert not (home / "systems").exists()
    allowed = lacking | {"COTRAIL_STORED_SYSTEMS": "true"}
    done = subprocess.run(command, env=allowed, cwd=home, capture_output=True, text=True)
    assert done.stdout == "Why?\n", done.stderr
