"""What the released code of IRCoT makes of a reader's text; each was seen by running its classes one after another."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from cotrail.common.printable_text import storable
from cotrail.core.answer_extraction import released_answer
from tests.cases import each_case


@each_case(
    ("text", "answer"),
    [
        ("Rome", "Rome"),
        ("Rome.", "Rome."),
        ("", ""),
        ("1,882", "1,882"),
        ("1.50", "1.5"),
        ("true", "true"),
        ("null", "null"),
        ('{"a": 1}', '{"a": 1}'),
        ('"Rome"', "Rome"),
        ("José", "José"),
        ('["José"]', "José"),
        ('["1,450 miles"]', "1,450 miles"),
        ('["a", "b"]', '["a", "b"]'),
        ("[1, 2]", '["1", "2"]'),
        ("[]", "[]"),
        ('["Rome"].', '["Rome"].'),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_a_direct_readers_text_is_the_answer_unless_it_is_json(text: str, answer: str) -> None:
    assert released_answer(text, chain=False) == answer


@each_case(
    ("text", "answer"),
    [
        ("So the answer is: Rome.", "Rome"),
        ("So the answer is: .", ""),
        ("So the answer is: ..", "."),
        ("So the answer is: 1.50.", "1.50"),
        ('So the answer is: "Rome".', "Rome"),
        ('So the answer is: ["1,450 miles"].', "1,450 miles"),
        ('So the answer is: ["a", "b"]', '["a", "b"]'),
        ('"So the answer is: Rome."', "Rome"),
        ('["x"]', "x"),
        ("It is Rome.", "It is Rome"),
        ("", ""),
        ("So the answer is: José.", r"Jos\u00e9"),
        ('So the answer is: he said "no".', r"he said \"no\""),
    ],
)
def test_a_chains_answer_is_what_its_json_states_or_all_of_it(text: str, answer: str) -> None:
    assert released_answer(text, chain=True) == answer


@given(text=st.text() | st.text(st.characters()).map(json.dumps), chain=st.booleans())
@example(text=r'"\ud800 and \u0000"', chain=False)
def test_any_text_has_an_answer_that_can_be_stored(text: str, *, chain: bool) -> None:
    answer = released_answer(text, chain=chain)
    assert answer == storable(answer)


@given(st.lists(st.text(st.characters(codec="ascii", exclude_categories=["C"])), min_size=2))
def test_the_spans_of_a_list_stay_as_they_are(spans: list[str]) -> None:
    for text in (json.dumps(spans), f"So the answer is: {json.dumps(spans)}."):
        assert json.loads(released_answer(text, chain=text.startswith("So"))) == spans
