"""What somebody adds outside of cotrail, a file each in one folder, is worked with as what cotrail brings."""

import json
import shutil
import subprocess
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
VARIABLES = {"COTRAIL_DEADLINES": json.dumps({"count": 60})}


def run(home: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [*COTRAIL, *arguments], env=environment_of(home, VARIABLES), cwd=home, capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


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
    refusal = run(alone, "systems", code=2)
    assert (
        "extensions/broken.py can't be imported (ModuleNotFoundError: No module named 'nothing_of_that_name')"
        in refusal
    )


def test_a_name_that_is_taken_is_refused(alone: Path) -> None:
    for name in ("counting.py", "translating.py"):
        shutil.copy(EXTENSIONS / name, alone / "extensions")
    own = (EXTENSIONS / "word_count.py").read_text().replace('"word-count"', '"ircot"')
    (alone / "extensions" / "own.py").write_text(own)
    assert "extensions/own.py names something ircot (version 1), as another one is named; rename it" in run(
        alone, "systems", code=2
    )


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
    assert "extensions/own.py names something tantivy, as another one is named" in run(alone, "corpora", code=2)
