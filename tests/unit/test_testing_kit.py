"""The kit for tests of systems of one's own, and the folder that `cotrail new system` writes."""

import os
import random
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import cotrail
from cotrail.core.actions.embed import Rate
from cotrail.core.replay import SystemBrokenError
from cotrail.core.results import Failure, Rated
from cotrail.core.system import Answer, StepFailed
from cotrail.errors import InputError, ReplayMismatchError
from cotrail.testing import carried_out


def mine(question: Any, k: int = 1) -> Generator[Any, Any, Answer]:
    found = yield from cotrail.search(question.text, k)
    said = yield from cotrail.write("".join(each.text for each in found), "\nA:")
    return Answer(text=said, paragraphs=found)


def test_searches_and_texts_are_scripted() -> None:
    documents = [{"title": "Ink", "text": "It is black."}, {"text": "Second."}]
    done = carried_out(mine, "What?", search={"What?": documents}, writes=["black"], settings={"k": 2})
    assert done.answer is not None
    assert (done.answer.text, len(done.answer.paragraphs)) == ("black", 2)
    assert (done.queries, done.prompts) == (["What?"], ["It is black.Second.\nA:"])
    assert carried_out(mine, "Other?", writes=lambda prompt: prompt.upper()).answer == Answer(text="\nA:")


def test_what_the_script_lacks_is_said() -> None:
    with pytest.raises(InputError, match=r"no text for prompt 1, which ends in '\\nA:'"):
        carried_out(mine, "What?")

    def embedding(question: Any) -> Generator[Any, Any, Answer]:
        try:
            yield Rate(by="relevance", text=question.text, paragraphs=())
        except StepFailed as failed:
            return Answer(text=failed.failure.type)
        return Answer(text="embedded")

    with pytest.raises(InputError, match="asks for Rate: give `others`"):
        carried_out(embedding, "What?")
    failing = carried_out(embedding, "What?", others=lambda _: Failure(type="StepError", message="away"))
    assert failing.answer == Answer(text="StepError")
    whole = carried_out(embedding, "What?", others=lambda _: Rated(scores=()))
    assert whole.answer == Answer(text="embedded")


def test_a_system_that_is_not_pure_does_not_end_or_raises_is_found_out() -> None:
    def chance(question: Any) -> Generator[Any, Any, Answer]:
        for _ in range(3):
            yield from cotrail.search(f"{question.text} {random.random()}")
        return Answer(text="")

    def endless(question: Any) -> Generator[Any, Any, Answer]:
        while True:
            yield from cotrail.search(question.text)

    def broken(question: Any) -> Generator[Any, Any, Answer]:
        yield from cotrail.search(question.text)
        raise ValueError("a bug")

    def no_action(question: Any) -> Generator[Any, Any, None]:
        yield 7

    def nothing(question: Any) -> Generator[Any, Any, None]:
        yield from cotrail.search(question.text)

    with pytest.raises(ReplayMismatchError):
        carried_out(chance, "What?")
    with pytest.raises(InputError, match="more than 50 steps"):
        carried_out(endless, "What?", most_steps=50)
    for system, said in (
        (broken, "ValueError in test_testing_kit.py"),
        (no_action, "isn't an action"),
        (nothing, "an Answer is due"),
    ):
        with pytest.raises(SystemBrokenError, match=said):
            carried_out(system, "What?")


def test_an_answer_that_is_not_made_of_the_record_is_found_out() -> None:
    def answer(question: Any) -> Generator[Any, Any, Answer]:
        yield from cotrail.search(question.text)
        return Answer(text=str(random.random()))

    with pytest.raises(ReplayMismatchError):
        carried_out(answer, "What?")


def test_a_new_system_is_tested_and_can_be_installed(tmp_path: Path) -> None:
    environment = {**os.environ, "COTRAIL_HOME": str(tmp_path / "home"), "PYTHONPATH": ""}
    command = [sys.executable, "-m", "cotrail.cli.main", "new", "system"]

    def run(*arguments: str, folder: Path = tmp_path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True)

    assert run(*command, "two-hops").returncode == 0
    tried = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder=tmp_path / "two-hops")
    assert "1 passed" in tried.stdout, tried.stdout
    assert 'two-hops = "two_hops:two_hops"' in (tmp_path / "two-hops" / "pyproject.toml").read_text()
    for name in ("two-hops", "Two", "1st", "class", "../up", "ircot", "json", "cotrail", ""):
        assert run(*command, name).returncode == 2
