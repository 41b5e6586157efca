"""Words of prompts: a system's own files, and those that a run brings."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.common.text_files import places, split
from cotrail.core.demonstrations import AnswerForm, whole_prompts
from cotrail.core.prompts import Asked
from cotrail.data.demonstrations.self_written import read_prompts
from cotrail.errors import DemonstrationError, InputError
from cotrail.services.library.systems import list_systems, write_words
from cotrail.systems.parts.prompting import filled, worded
from cotrail.systems.registry import find_system
from tests.cases import each_case

OWN = {"plan": "Plan: {question}", "solve": "Solve {question} by {plan}"}


def written(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def test_a_file_replaces_the_first_prompt_and_keeps_places_that_nobody_fills(tmp_path: Path) -> None:
    path = written(tmp_path, mine="Plan:\r\n{question}\n{chain}\n\n") / "mine.txt"
    (prompt,) = read_prompts(path, OWN, {}).items
    assert (prompt.id, prompt.question) == ("plan", "Plan:\n{question}\n{chain}")


def test_a_folder_replaces_those_that_it_has(tmp_path: Path) -> None:
    folder = written(tmp_path, solve="{plan}, so {question}", notes="not one of them")
    assert [each.id for each in read_prompts(folder, OWN, {}).items] == ["solve"]


def test_authors_files_of_prompts_are_read_by_the_systems_names_for_their_keys(tmp_path: Path) -> None:
    path = tmp_path / "prompts.json"
    path.write_text(json.dumps({"simple6": "Q {question}", "other": "x", "list": []}))
    (prompt,) = read_prompts(path, OWN, {"simple6": "plan"}).items
    assert (prompt.id, prompt.question) == ("plan", "Q {question}")


@pytest.mark.parametrize("words", ["Plan.", "{question} {question}", "{Question}"])
def test_a_place_that_is_missing_or_there_twice_is_refused(tmp_path: Path, words: str) -> None:
    with pytest.raises(DemonstrationError, match=r"the prompt plan has \d times \{question\}; write it once"):
        read_prompts(written(tmp_path, plan=words), OWN, {})


def test_a_folder_without_any_of_the_prompts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DemonstrationError, match="has no prompt of the system; it has plan, solve"):
        read_prompts(written(tmp_path, other="x"), OWN, {})


@pytest.mark.parametrize("text", ["[]", "{", "nul"])
def test_a_json_file_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DemonstrationError, match=r"a\.json isn't a JSON object"):
        read_prompts(tmp_path / "a.json", OWN, {})


def test_what_a_run_brings_goes_before_the_systems_own() -> None:
    shots = {AnswerForm.PROMPT: whole_prompts({"plan": "Mine: {question}"})}
    assert worded(shots, OWN, "plan", question="Who?") == ("Mine: ", "Who?")
    assert worded(shots, OWN, "solve", question="Who?", plan=()) == ("Solve ", "Who?", " by ")


def test_a_value_is_never_looked_at() -> None:
    assert filled("{question}{plan}", question=Asked("{plan}"), plan=["a", "{question}"]) == (
        Asked("{plan}"),
        "a",
        "{question}",
    )


@given(st.text(alphabet="{}ab_ "))
def test_words_are_their_parts(words: str) -> None:
    assert "".join(split(words)) == words
    assert all(each in words for each in places(words))
    assert "".join(filled(words)) == words  # type: ignore[arg-type]


@each_case("name", [each.name for each in list_systems()])
def test_the_one_prompt_that_a_file_replaces_is_one_that_asks_the_question(name: str) -> None:
    spec = find_system(name)
    words = spec.needs(spec.settings()).words
    assert not words or "{question}" in words[next(iter(words))]


def test_own_words_are_written_to_a_folder_once(tmp_path: Path) -> None:
    (path,) = write_words("searchain", tmp_path / "words")
    assert path.read_text().endswith("[Question]: {question}\n")
    with pytest.raises(InputError, match="is there already"):
        write_words("searchain", tmp_path / "words")
    with pytest.raises(InputError, match="demonstrations alone"):
        write_words("ircot", tmp_path / "others")
