"""Where models state their answers: each operation on texts by which the authors' code reads them, as a table."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.answer_extraction import stated_answer
from cotrail.systems.parts.answers import behind, behind_answer_is, between, boxed, first_between, stated_or_all
from cotrail.systems.tag_agents.agents import boxed_in_answer, boxed_text, closed_answer, tagged_answer
from tests.cases import each_case

Read = Callable[[str], str | None]


@each_case(
    ("text", "by_ircot", "by_any_model"),
    [
        ("So the answer is: Oslo.", "Oslo", "Oslo"),
        ("The answer is Oslo.", "Oslo", "Oslo"),
        ("The Answer Is: Oslo.", None, "Oslo"),
        ("Answer is: Oslo", None, "Oslo"),
        ("the answer is:Oslo", None, "Oslo"),
        ("It is Oslo.\nSo the answer is: Oslo.", None, "Oslo"),
        ("So the answer is: Oslo.\nAnd more", "Oslo", "Oslo"),
        ("the answer is a. So the answer is: b.", "b", "b"),
        ("the answer is: a, or the answer is b", "b", "b"),
        ("the answer is: U.S.", "U.S", "U.S"),
        ("the answer is: .", None, ""),
        ("the answer is:", None, ""),
        ("the answer is", None, ""),
        ("", None, None),
        ("the answers are a", None, None),
        ("\u0130 answer is: x", "x", "x"),
    ],
)
def test_answer_is_is_read_by_two_rules(text: str, by_ircot: str | None, by_any_model: str | None) -> None:
    assert stated_answer(text) == by_ircot
    assert behind_answer_is(text) == by_any_model
    assert stated_or_all(text) == (text.strip().removesuffix(".") if by_any_model is None else by_any_model)


@each_case(
    ("read", "text", "answer"),
    [
        (tagged_answer, "<answer>a</answer><answer> b </answer>", "b"),
        (tagged_answer, "<answer>a <answer>b</answer>", "b"),
        (tagged_answer, "<answer>a", "a"),
        (tagged_answer, "a</answer>", None),
        (tagged_answer, "<answer></answer>", ""),
        (closed_answer, "<answer>a</answer><answer>b", "a"),
        (closed_answer, "<answer>a", None),
        (closed_answer, "</answer><answer>a", None),
        (closed_answer, "<answer>\na\n</answer>", "a"),
        (boxed_in_answer, "\\boxed{a}<answer>\\boxed{b} \\boxed{c}</answer><answer>\\boxed{d}</answer>", "c"),
        (boxed_in_answer, "<answer>a</answer>\\boxed{b}", None),
        (boxed_in_answer, "<answer>\\boxed{a \\text{b} {c}}</answer>", "a \\text{b} {c}"),
        (boxed_in_answer, "<answer>\\boxed{a} \\boxed{b</answer>", None),
        (boxed_in_answer, "<answer>\\boxed{}</answer>", ""),
        (boxed_in_answer, "<answer>\\boxed a$</answer>", None),
        (boxed_text, "\\boxed{a} and \\boxed{b}", "b"),
        (boxed_text, "\\boxed{\\text{(a)}}", "a"),
        (boxed_text, "a", None),
    ],
)
def test_answers_of_agents_stand_where_their_authors_read_them(read: Read, text: str, answer: str | None) -> None:
    assert read(text) == answer


@each_case(
    ("text", "first", "last"),
    [
        ("", None, None),
        ("[a]", "a", "a"),
        ("[ a ][ b ]", "a", "b"),
        ("[a[b]c]", "a[b", "b"),
        ("]a[b", "b", "b"),
        ("[]", "", ""),
        ("]", None, None),
    ],
)
def test_the_first_and_the_last_pair_of_marks(text: str, first: str | None, last: str | None) -> None:
    assert (first_between(text, "[", "]"), between(text, "[", "]")) == (first, last)


@each_case(
    ("text", "said"),
    [
        ("Answer: a", "a"),
        ("ANSWER: a.", "a"),
        ("answer: a\nanswer: b\nc", "b"),
        ("answer:\n\n  a  \nb", "a"),
        ("answer:", ""),
        ("a", None),
    ],
)
def test_what_follows_a_beginning_is_one_line(text: str, said: str | None) -> None:
    assert behind(text, "answer:") == said


@given(st.lists(st.sampled_from(["<answer>", "</answer>", "\\boxed{", "{", "}", "answer is", ": ", "\n", "x", "\0"])))
def test_any_text_is_read_and_nothing_is_made_up(pieces: list[str]) -> None:
    text = "".join(pieces)
    reads: tuple[Read, ...] = (tagged_answer, closed_answer, boxed_in_answer, boxed, boxed_text, behind_answer_is)
    assert [answer for read in reads if (answer := read(text)) is not None and answer not in text] == []
