"""Runs that are imported: transcripts of other programs, and what `cotrail.run` recorded without a store."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.cases import each_case
from tests.faults.stacked import COTRAIL, environment_of, stacked

TAGGED = (
    "<think>I look.</think><search>Drowned Bell</search>\n<information>Doc 1(Title: The Drowned Bell) By Marit Aune.\n"
    "Doc 2(Title: Ysborg) A port.</information>\n<answer> Marit Aune </answer>"
)
CALL = {"id": "c", "function": {"name": "search", "arguments": '{"query": "Marit Aune"}'}}
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "Where was she born?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": '[{"title": "Marit Aune", "text": "Born in Ysborg."}]'},
    {"role": "assistant", "content": [{"type": "text", "text": "Ysborg"}]},
]
TRANSCRIPTS = [
    {"id": "a", "question": "Who composed it?", "golden_answers": ["Marit Aune"], "output": TAGGED},
    {"id": "b", "answers": ["Ysborg"], "messages": CHAT},
    {"id": "c", "question": "Is it so?", "answers": ["no"], "output": "It isn't.\x00", "answer": "no"},
    {"id": "e", "question": "Plain?", "messages": [*CHAT[:2], CHAT[2] | {"content": "Nobody knows."}, CHAT[3]]},
    {"id": "f", "question": "Empty?", "output": "<search>q</search> <result></result> It is.", "answers": ["it is"]},
    {"id": "d", "question": "Answered alone?", "answers": ["yes"], "answer": "yes"},
]
IN_PROCESS = """
import cotrail
paragraphs = [{"title": "Marit Aune", "text": "Marit Aune was born in Ysborg."}]
questions = [{"question": "Where was Marit Aune born?", "answers": ["Ysborg"]}]
cotrail.run("one-step", questions, corpus=paragraphs, model="scripted").save("saved.jsonl")

@cotrail.system
def mine(question):
    found = yield from cotrail.search(question.text, 1)
    return cotrail.Answer(text="", paragraphs=found)

cotrail.run(mine, questions, corpus=paragraphs, model="scripted").save("own.jsonl")
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="co-") as made:
        home = Path(made)
        script = {"name": "writer", "questions": {}, "default": {"answer": "Ysborg", "sentences": ["Ysborg"]}}
        (home / "script.json").write_text(json.dumps(script))
        (home / "models.toml").write_text('[models.scripted]\nengine = "scripted"\npath = "script.json"\n')
        (home / "t.jsonl").write_text("".join(json.dumps(each) + "\n" for each in TRANSCRIPTS))
        (home / "list.json").write_text(json.dumps(TRANSCRIPTS))
        with stacked(home, {}):
            run(home, "up")
            yield home


def run(home: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [*COTRAIL, *arguments], env=environment_of(home, {}), cwd=home, capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout if code == 0 else done.stderr


def imported(home: Path, file: str, *arguments: str) -> str:
    name: str = json.loads(run(home, "import", file, *arguments, "--json"))["run"]
    run(home, "watch", name)
    return name


def traced(home: Path, name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in run(home, "export", name).splitlines()]


def test_transcripts_are_read_scored_and_compared_and_never_called_verified(home: Path) -> None:
    name = imported(home, "t.jsonl", "--model", "search-r1", "--name", "theirs")
    rows = traced(home, name)
    assert [each["answer"] for each in rows] == ["Marit Aune", "Ysborg", "no", "Ysborg", "It is.", "yes"]
    assert [[each["title"] for each in row["paragraphs"]] for row in rows] == [  # type: ignore[attr-defined]
        ["The Drowned Bell", "Ysborg"],
        ["Marit Aune"],
        [],
        [""],
        [],
        [],
    ]
    assert json.loads(run(home, "score", name, "--json"))["metrics"]["answer_em"] == 1
    said = run(home, "audit", "verify", name)
    assert "as it was imported" in said
    assert "as it was recorded" not in said
    assert json.loads(run(home, "audit", "verify", name, "--json"))["imported"]
    assert "6 of 6 questions with 13 steps replayed as recorded" in run(home, "replay", name)
    again = imported(home, "list.json")
    assert [each["answer"] for each in traced(home, again)] == [each["answer"] for each in rows]
    assert json.loads(run(home, "compare", name, again, "--json"))
    assert "search" in run(home, "trace", name, "b")
    assert "submit another one" in run(home, "ask", "Why?", "--system", "imported", code=2)


def test_what_was_asked_in_process_is_imported_with_its_steps(home: Path) -> None:
    subprocess.run([sys.executable, "-c", IN_PROCESS], env=environment_of(home, {}), cwd=home, check=True)
    name = imported(home, "saved.jsonl")
    [row] = traced(home, name)
    assert (row["answer"], row["answer_em"]) == ("Ysborg", 1)
    assert "as it was imported" in run(home, "audit", "verify", name)
    assert "replayed as recorded" in run(home, "replay", name)
    assert "only in the process that asked it" in run(home, "import", "own.jsonl", code=2)
    run(home, "export", name, "--format", "inspect", "--output", "log.eval")
    assert [each["answer"] for each in traced(home, imported(home, "log.eval"))] == ["Ysborg"]
    (home / "own.jsonl").write_text(run(home, "export", name))
    [alone] = traced(home, imported(home, "own.jsonl"))
    assert (alone["question_id"], alone["answer"], alone["answer_em"]) == (row["question_id"], "Ysborg", 1)


@each_case(
    ("content", "said"),
    [
        (b"", "has no transcripts"),
        (b"PK\x03\x04 cut off", "no whole log of Inspect"),
        (b'[{"question": "q", "output": "x"},', "was the file cut off"),
        (b'{"question": "q", "output": "x"}\n{"question"', "record 2 is no JSON"),
        (b'{"question": "q"}', "record 1: it has neither `messages` nor an `output`"),
        (b'{"output": "x"}', "no `question`"),
        (b'{"id": 1, "question": "q", "output": "x"}\n{"id": 1, "question": "q", "output": "x"}', "is there twice"),
        (b'{"question": "q", "messages": [{"role": "prophet", "content": "x"}]}', "the role 'prophet'"),
        (b'{"cotrail-run":{"id": "x"}}', "isn't whole, or of another version"),
        (b"\xff\xfe", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
    ],
)
def test_a_file_that_is_damaged_or_hostile_is_refused_with_the_place(home: Path, content: bytes, said: str) -> None:
    (home / "bad").write_bytes(content)
    assert said in run(home, "import", "bad", code=2)


def test_nothing_is_left_of_a_file_whose_end_is_damaged(home: Path) -> None:
    before = run(home, "runs", "--json")
    (home / "bad").write_bytes((home / "t.jsonl").read_bytes() + b'{"question": "q"}\n')
    run(home, "import", "bad", code=2)
    with ZipFile(home / "bomb.eval", "w", 8) as log:
        log.writestr("samples/1_epoch_1.json", b" " * (2**26 + 10))
    assert "leave it out" in run(home, "import", "bomb.eval", code=2)
    assert run(home, "runs", "--json") == before
