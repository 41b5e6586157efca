"""What somebody adds outside of cotrail, a file each in one folder, is worked with as what cotrail brings."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Eventually
from tests.faults.stacked import COTRAIL, ROOT, environment_of, stacked

EXTENSIONS = ROOT / "tests" / "extensions"


TRANSLATION = "How many words are these?"
RIDDLE = {"number": 1, "riddle": "Wie viele Worte sind das?", "solution": "5", "age": "new"}
MODELS = """
[models.scripted]
engine = "scripted"
path = "script.json"

[translators.german]
engine = "scripted"
path = "german.json"
"""
METRICS = """
from cotrail import Metric

def raises(question):
    return 1 / 0

def gives_nan(question):
    return float("nan")

def good(question):
    return 1

SCORES = (raises, gives_nan, good)
ALL = tuple(Metric(name=each.__name__, title="", meaning="", of="answer", score=each) for each in SCORES)
"""
ASKED = """
import cotrail

@cotrail.system(needs=cotrail.Needs())
def mine(question):
    yield from ()
    return cotrail.Answer(text="x")

answers = cotrail.run(mine, ["Why?", "Who?"])
print(*(next(iter(answers)).metrics.get(name) for name in ("raises", "gives_nan", "good")))
"""
VARIABLES = {"COTRAIL_DEADLINES": json.dumps({"count": 60})}


def run(home: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [*COTRAIL, *arguments], env=environment_of(home, VARIABLES), cwd=home, capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def warned(home: Path, *arguments: str) -> str:
    """What is said of extensions that can't be used, while the command does its work."""
    done = subprocess.run(
        [*COTRAIL, *arguments], env=environment_of(home, VARIABLES), cwd=home, capture_output=True, text=True
    )
    assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """One whose stack works with the extensions."""
    with tempfile.TemporaryDirectory(prefix="ce-") as made:
        home = Path(made)
        shutil.copytree(EXTENSIONS, home / "extensions", ignore=shutil.ignore_patterns("__pycache__"))
        (home / "riddles.jsonl").write_text(json.dumps(RIDDLE) + "\n")
        (home / "script.json").write_text(json.dumps({"name": "writer", "questions": {}, "default": {"answer": "A"}}))
        (home / "german.json").write_text(json.dumps({"translations": {RIDDLE["riddle"]: TRANSLATION}}))
        (home / "models.toml").write_text(MODELS)
        with stacked(home, VARIABLES):
            run(home, "up")
            yield home


def test_a_run_of_made_up_records_is_carried_out_scored_traced_and_verified(home: Path, eventually: Eventually) -> None:
    made = ["--system", "word-count", "--dataset", "riddles", "--questions", "riddles.jsonl", "--translator", "german"]
    (home / "run.toml").write_text("[settings]\ntranslated = true\n")
    run(home, "submit", "run.toml", *made, "--wait")
    steps = json.loads(run(home, "trace", "latest", "1", "--json"))["steps"]
    assert [(step["kind"], step["result"]) for step in steps] == [
        ("translate", {"text": TRANSLATION}),
        ("count", {"words": 5}),
    ]
    traced = run(home, "trace", "latest", "1")
    assert f"“{TRANSLATION}”" in traced
    assert "5 words, no more" in traced
    scores = json.loads(run(home, "score", "latest", "--json"))["metrics"]
    assert (scores["answer_em"], scores["brevity"]) == (1.0, 1.0)
    provenance = json.loads(run(home, "show", "latest", "--json"))["configuration"]["provenance"]
    assert "word_count.py" in provenance["extensions"]
    eventually(lambda: "right" in run(home, "sql", "SELECT outcome FROM question_summaries"), "it is summarized")
    run(home, "audit", "verify", "latest")


def test_a_made_up_search_engine_builds_a_corpus(home: Path) -> None:
    (home / "corpus.jsonl").write_text('{"id": "ink", "title": "Ink", "text": "It stains."}\n')
    run(home, "index", "corpus.jsonl", "--name", "shared", "--engine", "overlap")
    assert json.loads(run(home, "corpora", "--json"))[0]["engine"] == "overlap"


def test_what_there_is_has_the_made_up_records_too(home: Path) -> None:
    assert "word-count" in run(home, "systems")
    assert "riddles" in run(home, "datasets")
    listed = [each for each in json.loads(run(home, "models", "--json")) if each["name"] == "german"]
    assert [(each["kind"], each["engine"]) for each in listed] == [("translator", "scripted")]
    assert "The model that translates questions." in run(home, "submit", "--help")


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """A home without a stack, with an empty folder of extensions."""
    (tmp_path / "extensions").mkdir()
    return tmp_path


def test_what_cannot_be_imported_is_named(alone: Path) -> None:
    (alone / "extensions" / "broken.py").write_text("import nothing_of_that_name\n")
    (alone / "extensions" / "ends.py").write_text("import sys\nsys.exit(3)\n")
    said = warned(alone, "systems")
    assert "extensions/broken.py can't be used (ModuleNotFoundError: No module named 'nothing_of_that_name')" in said
    assert "extensions/ends.py can't be used (SystemExit: 3)" in said


def test_a_package_that_names_nothing_is_named_and_a_metric_that_fails_leaves_questions_out(alone: Path) -> None:
    named = alone / "site" / "strange-1.dist-info"
    named.mkdir(parents=True)
    (named / "METADATA").write_text("Name: strange\nVersion: 1\n")
    (named / "entry_points.txt").write_text("[cotrail.systems]\nnumber = strange:X\n")
    (alone / "site" / "strange.py").write_text("X = 3\n")
    (alone / "extensions" / "metrics.py").write_text(METRICS)
    (alone / "script.json").write_text(json.dumps({"name": "writer", "questions": {}, "default": {"answer": "A"}}))
    (alone / "models.toml").write_text(MODELS.partition("[translators")[0])
    done = subprocess.run(
        [sys.executable, "-c", ASKED],
        env=environment_of(alone, {"PYTHONPATH": str(alone / "site")}),
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["None", "None", "1.0"], done.stderr
    assert "number of the package strange can't be used (InputError: what it names is neither a record" in done.stderr
    assert "leaves questions out (ZeroDivisionError: division by zero); correct it" in done.stderr
    assert "(it gives nan, and not a number)" in done.stderr


def test_a_name_that_is_taken_is_refused(alone: Path) -> None:
    for name in ("counting.py", "translating.py"):
        shutil.copy(EXTENSIONS / name, alone / "extensions")
    own = (EXTENSIONS / "word_count.py").read_text().replace('"word-count"', '"ircot"')
    (alone / "extensions" / "own.py").write_text(own)
    said = warned(alone, "systems")
    assert "extensions/own.py names something ircot (version 1), as another one is named; rename it" in said


def test_modules_beginning_with_an_underscore_are_parts_of_others(alone: Path) -> None:
    shutil.copy(EXTENSIONS / "translating.py", alone / "extensions")
    shutil.copy(EXTENSIONS / "counting.py", alone / "extensions" / "_counting.py")
    own = (EXTENSIONS / "word_count.py").read_text().replace(".counting", "._counting")
    (alone / "extensions" / "own.py").write_text(own)
    assert "word-count" in run(alone, "systems")


def test_a_search_engine_indexes_and_is_named_by_the_manifest(alone: Path) -> None:
    shutil.copy(EXTENSIONS / "overlap.py", alone / "extensions")
    (alone / "notes.jsonl").write_text('{"id": "n", "title": "Vell", "text": "where the vell ends"}\n')
    run(alone, "index", "notes.jsonl", "--name", "notes", "--engine", "overlap", "--set", "folds=false")
    [listed] = json.loads(run(alone, "corpora", "--json"))
    assert (listed["corpus"], listed["engine"], listed["paragraphs"]) == ("notes", "overlap", 1)
    taken = (EXTENSIONS / "overlap.py").read_text().replace('"overlap"', '"tantivy"')
    (alone / "extensions" / "own.py").write_text(taken)
    assert "extensions/own.py names something tantivy, as another one is named" in warned(alone, "corpora")


LOADED = """
from pathlib import Path

from cotrail.configuration.extensions import VIEWS
from cotrail.configuration.extensions import load_extensions
from cotrail.data.datasets.loading import load_questions
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.systems.judge.rubric import RUBRICS

load_extensions()
Path("quiz.jsonl").write_text('{"nr": 1, "q": "Where does the Vell end?", "a": ["the sea"]}')
[read] = load_questions("pub-quiz", Path("quiz.jsonl"))
assert (read.text, read.answers) == ("Where does the Vell end?", ("the sea",))
print("short" in METRICS, "polite" in RUBRICS, VIEWS["longest"].html([{"answer": "four"}]))
"""


def test_the_page_on_parts_of_ones_own_does_what_it_says(alone: Path) -> None:
    page = (ROOT / "docs" / "extensions.md").read_text()
    (alone / "extensions" / "mine.py").write_text(page.split("```python\n")[1].split("```")[0])
    (alone / "notes.jsonl").write_text('{"id": "n", "text": "where vell"}\n{"id": "o", "text": "other"}\n')
    assert run(alone, "count", "notes.jsonl", "--twice").strip() == "18"
    run(alone, "index", "notes.jsonl", "--name", "notes", "--engine", "initials")
    assert json.loads(run(alone, "search", "notes", "Vell waters", "--json"))["paragraphs"][0]["id"] == "n"
    assert "our pub" in run(alone, "datasets", "pub-quiz")
    done = subprocess.run(
        [sys.executable, "-c", LOADED], env=environment_of(alone, {}), cwd=alone, capture_output=True, text=True
    )
    assert done.stdout == "True True <p>The longest answer has 4 characters.</p>\n", done.stderr
