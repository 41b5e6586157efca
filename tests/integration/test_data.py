"""`cotrail data` as a process: killed, out of disk, gone on with; and what it writes, used by the other commands."""

import bz2
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cotrail.data.corpora.building import draft_path, read_checkpoint
from cotrail.data.datasets.loading import load_questions
from cotrail.engines.retrieval.stores import open_index
from tests.conftest import wait_until
from tests.searching import search

FILES, LINES = 150, 1000


def cotrail(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "cotrail.cli.main", *map(str, arguments)]


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(cotrail(*arguments), capture_output=True, text=True, timeout=120, **options)


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """150,000 abstracts in the form of HotpotQA's dump."""
    folder = tmp_path_factory.mktemp("dump") / "AA"
    folder.mkdir()
    for file in range(FILES):
        lines = (
            json.dumps(
                {"id": str(n), "url": "u", "title": f"Mill {n}", "text": [f"Mill {n} has a wheel.", f" It is {n}."]}
            )
            for n in range(file * LINES, (file + 1) * LINES)
        )
        (folder / f"wiki_{file:03}.bz2").write_bytes(bz2.compress("\n".join(lines).encode(), 1))
    return folder.parent


@pytest.fixture(scope="module")
def whole(dump: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The corpus as it comes out when nothing happens."""
    output = tmp_path_factory.mktemp("whole") / "corpus.jsonl"
    assert run("data", "build", "hotpotqa", dump, "--output", output).returncode == 0
    return output.read_bytes()


def kill_when_written(dump: Path, output: Path, paragraphs: int) -> None:
    """Begins or goes on with the build, and kills it once so many paragraphs are safe."""

    def far_enough() -> bool:
        state = read_checkpoint(output)
        return state is not None and state.paragraphs >= paragraphs

    with subprocess.Popen(cotrail("data", "build", "hotpotqa", dump, "--output", output)) as process:
        wait_until(far_enough, "the build is under way")
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


def test_a_build_killed_twice_gives_the_corpus_of_an_undisturbed_one(dump: Path, whole: bytes, tmp_path: Path) -> None:
    output = tmp_path / "corpus.jsonl"
    for paragraphs in (20_000, 60_000):
        kill_when_written(dump, output, paragraphs)
        assert not output.exists()
        assert draft_path(output).stat().st_size < len(whole)
    done = run("data", "build", "hotpotqa", dump, "--output", output)
    assert "150,000 paragraphs" in done.stdout
    assert "by an earlier build" in done.stdout
    assert output.read_bytes() == whole
    again = run("data", "build", "hotpotqa", dump, "--output", output)
    assert (again.returncode, "Nothing to do" in again.stdout) == (0, True)


def test_an_interrupted_build_says_that_it_can_be_gone_on_with(dump: Path, whole: bytes, tmp_path: Path) -> None:
    output = tmp_path / "corpus.jsonl"
    command = cotrail("data", "build", "hotpotqa", dump, "--output", output)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_until(draft_path(output).exists, "the build is under way")
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command continues from here" in told
    assert run("data", "build", "hotpotqa", dump, "--output", output).returncode == 0
    assert output.read_bytes() == whole


def test_a_full_disk_is_one_line_and_the_build_goes_on_when_there_is_room(
    dump: Path, whole: bytes, tmp_path: Path
) -> None:
    output, room = tmp_path / "corpus.jsonl", len(whole) // 2

    def cramped() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    full = run("data", "build", "hotpotqa", dump, "--output", output, preexec_fn=cramped)
    assert full.returncode == 2
    assert "File too large" in full.stderr
    assert len(full.stderr.splitlines()) == 2  # and the page that helps
    assert run("data", "build", "hotpotqa", dump, "--output", output).returncode == 0
    assert output.read_bytes() == whole


def test_a_corpus_that_was_built_can_be_indexed_and_searched(dump: Path, whole: bytes, tmp_path: Path) -> None:
    output = tmp_path / "corpus.jsonl"
    output.write_bytes(b"".join(whole.splitlines(keepends=True)[:500]))
    environment = {**os.environ, "COTRAIL_HOME": str(tmp_path)}
    indexed = run("index", output, "--name", "mills", "--json", env=environment)
    assert msgspec.json.decode(indexed.stdout)["paragraphs"] == 500
    (hit,) = search(open_index(tmp_path / "corpora" / "mills"), "mill 77", 1, ("Mill 77",))
    assert (hit.paragraph.title, hit.paragraph.text) == ("Mill 77", "Mill 77 has a wheel. It is 77.")


def test_drawn_questions_are_files_of_the_same_dataset_with_what_belongs_beside_them(tmp_path: Path) -> None:
    names = '{"Q_id": "Q1", "aliases": ["the mill"], "demonyms": []}\n'
    (tmp_path / "id_aliases.json").write_text(names)
    questions = tmp_path / "dev.json"
    records = [
        {"_id": f"q{n}", "question": "?", "answer": "a mill", "answer_id": "Q1", "context": [], "evidences": []}
        for n in range(20)
    ]
    questions.write_text(json.dumps(records))
    drawn = tmp_path / "drawn"
    arguments = ("data", "sample", "2wikimultihopqa", questions, "--development", 5, "--test", 10, "--output", drawn)
    written = msgspec.json.decode(run(*arguments, "--json").stdout)
    development, test = (load_questions("2wikimultihopqa", Path(written[name])) for name in ("development", "test"))
    assert (len(development), len(test)) == (5, 10)
    assert not {question.id for question in development} & {question.id for question in test}
    assert {question.answers for question in development} == {("a mill", "the mill")}
    assert run(*arguments).returncode == 0
    other = run(*arguments, "--seed", 1)
    assert (other.returncode, "holds something else" in other.stderr) == (2, True)
    assert load_questions("2wikimultihopqa", drawn / "development.json") == development


def test_asking_for_more_questions_than_there_are_is_one_line(tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"id": "q1", "question": "What?"}\n')
    refused = run("data", "sample", "jsonl", questions, "--output", tmp_path / "drawn")
    assert refused.returncode == 2
    assert refused.stderr.startswith("cotrail: 100 development and 500 test questions")
    assert not (tmp_path / "drawn").exists()
