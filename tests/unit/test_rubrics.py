"""Rubrics: those that come with cotrail, and files of one's own, which are refused with what is wrong with them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cotrail.common.text_files import places
from cotrail.errors import InputError, UnknownNameError
from cotrail.systems.judge.rubric import BUILT_IN, Rubric, built_in, find_rubric
from tests.cases import each_case

OWN = """
name = "strict"
title = "Strict"
words = "Is {answer} the same as {answers}?"
verdicts = [{ name = "yes", score = 1 }, { name = "no", score = 0 }]
"""
SCORES = {
    "correct": {"correct": 1, "incorrect": 0},
    "browsecomp-plus": {"correct": 1, "incorrect": 0},
    "frames": {"correct": 1, "incorrect": 0},
    "simpleqa": {"correct": 1, "incorrect": 0, "not attempted": 0},
    "crag": {"correct": 1, "missing": 0, "incorrect": -1},
    "faithful": {"supported": 1, "unsupported": 0, "contradicted": -1},
    "preference": {"first": 1, "second": 0, "tie": 0.5},
}


def test_the_built_in_rubrics_have_their_names_and_the_published_scores() -> None:
    assert {name: built_in(name).scores for name in BUILT_IN} == SCORES
    assert [built_in(name).name for name in BUILT_IN] == list(BUILT_IN)
    assert {name: built_in(name).asks for name in ("correct", "faithful", "preference")} == {
        "correct": "answer",
        "faithful": "claims",
        "preference": "pair",
    }


def test_a_rubric_shows_what_its_words_have_places_for() -> None:
    shows = {
        name: {place for place in ("answers", "sentences", "paragraphs") if built_in(name).shows(place)}
        for name in BUILT_IN
    }
    assert shows == {name: {"answers"} for name in BUILT_IN} | {
        "faithful": {"sentences", "paragraphs"},
        "preference": set(),
    }


def test_every_rubric_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "judging.md").read_text("utf-8")
    for name in BUILT_IN:
        assert f"| `{name}` |" in page


@each_case("name", BUILT_IN)
def test_a_rubric_comes_back_from_the_settings_of_its_run(name: str) -> None:
    rubric = built_in(name)
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(rubric))), Rubric) == rubric
    assert all(place.islower() for place in places(rubric.words))


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "strict.toml"
    path.write_text(OWN)
    rubric = find_rubric(str(path))
    assert (rubric.name, rubric.scores, rubric.asks, rubric.confidence) == (
        "strict",
        {"yes": 1, "no": 0},
        "answer",
        False,
    )


@each_case(
    ("line", "said"),
    [
        ('words = "Is it?"', "`words` lacks the place {answer}"),
        ('words = "Is {answr} right?"', r"there is no place '{answr}' \(did you mean {answer}\?\)"),
        ('words = ""', "`words` must be"),
        ('verdicts = [{ name = "yes", score = 1 }]', "verdicts"),
        ('verdicts = [{ name = "yes", score = 2 }, { name = "no", score = 0 }]', "score"),
        ('verdicts = [{ name = "yes", score = 1 }, { name = "yes", score = 0 }]', "the same name"),
        ('verdicts = [{ name = "a", score = 0 }, { name = "b", score = 0 }]', "no verdict has the score 1"),
        ('name = "correct"', "isn't the one that is named 'correct'"),
        ('asks = "pairs"', r"`asks` can't be 'pairs' \(did you mean pair\?\)"),
        ('asks = "pair"', "first .* second .* tie"),
        ('asks = "claims"', "`claims` has the words"),
        ('wrods = "x"', "there is no key `wrods`"),
        ('claims = "List {answer}"', "`claims` has the words"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, line: str, said: str) -> None:
    key = line.partition(" ")[0]
    lines = [each for each in OWN.splitlines() if not each.startswith(f"{key} ")]
    path = tmp_path / "own.toml"
    path.write_text("\n".join([*lines, line]))
    with pytest.raises(InputError, match=said):
        find_rubric(str(path))


@each_case(
    ("changes", "said"),
    [
        (
            {"asks": "claims", "claims": "{answer}", "words": "{claim} {paragraphs}", "confidence": True},
            "no confidence",
        ),
        ({"asks": "claims", "claims": "{answer}", "words": "{claim} {paragraphs}", "extracts": True}, "one answer"),
        ({"asks": "claims", "claims": "{claim}", "words": "{claim} {paragraphs}"}, "`claims`: there is no place"),
    ],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, Any], said: str) -> None:
    values = msgspec.toml.decode(OWN)
    with pytest.raises(msgspec.ValidationError, match=said):
        msgspec.convert(values | changes, Rubric)


def test_a_name_that_nobody_knows_is_told_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"there is no rubric 'simple-qa' \(did you mean simpleqa\?\)"):
        find_rubric("simple-qa")
    with pytest.raises(InputError, match=r"none\.toml can't be read"):
        find_rubric("none.toml")
