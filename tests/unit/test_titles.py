import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.common.printable_text import storable
from cotrail.core.questions import parse_titles, title_question
from cotrail.data.demonstrations.sets import read_demonstrations
from tests.cases import each_case

RELEASED = Path(__file__).parents[2].parent / "shared" / "data" / "ircot_prompts" / "iirc"

needs_released = pytest.mark.skipif(not RELEASED.is_dir(), reason="the released prompt files are not beside the repo")

TITLES = st.lists(st.text('ab, "[]木', max_size=8), max_size=4)


@each_case(
    ("written", "titles"),
    [
        ('["Oslo", "Brenn"]', ("Oslo", "Brenn")),
        ('["Cooksville, Illinois"]', ("Cooksville, Illinois",)),
        ('["Mr. \\"T\\""]', ('Mr. "T"',)),
        ('["Oslo", "Oslo", " ", " Brenn "]', ("Oslo", "Brenn")),
        ('["Oslo", 1882, null]', ("Oslo",)),
        ("Oslo, Brenn", ("Oslo", "Brenn")),
        ('["Oslo", "Brenn', ("Oslo", "Brenn")),
        ("Cooksville, Illinois", ("Cooksville", "Illinois")),
        ('"Oslo"', ("Oslo",)),
        ("1882", ("1882",)),
        ('{"title": "Oslo"}', ("{title: Oslo}",)),
        ("Oslo,, Brenn,", ("Oslo", "Brenn")),
        ("[]", ()),
        ('[""]', ()),
        ('["a\\ud800b", "\\u0000"]', ("a\ufffdb", "\ufffd")),
        ("[" * 100_000, ()),
        ("", ()),
    ],
)
def test_titles_are_read_as_the_released_code_reads_them(written: str, titles: tuple[str, ...]) -> None:
    assert parse_titles(written) == titles


@given(TITLES)
def test_every_list_of_titles_comes_back_each_once(titles: list[str]) -> None:
    stored = (storable(title).strip() for title in titles)
    assert parse_titles(json.dumps(titles)) == tuple(dict.fromkeys(filter(None, stored)))


@given(st.text())
def test_whatever_a_model_writes_gives_titles_without_space_around_them(written: str) -> None:
    titles = parse_titles(written)
    assert len(set(titles)) == len(titles)
    assert all(title and title == title.strip() for title in titles)


@needs_released
@pytest.mark.parametrize("style", ["codex", "flan_t5"])
def test_released_title_demonstrations_ask_with_the_same_words(style: str) -> None:
    asked = {d.id: d for d in read_demonstrations(RELEASED / f"no_context_open_llm_retrieval_{style}.txt").items}
    questions = {d.id: d.question for d in read_demonstrations(RELEASED / "no_context_cot_qa_codex.txt").items}
    lists = read_demonstrations(RELEASED / "no_context_open_llm_retrieval_codex.txt").items
    count = {d.id: len(parse_titles(d.answer)) for d in lists}
    assert {id_: title_question(question, count[id_]) for id_, question in questions.items()} == {
        id_: each.question.removeprefix("Answer the following question.\n") for id_, each in asked.items()
    }
