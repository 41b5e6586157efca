"""Recitation-augmented answers, held against section 3 of Sun et al. (2023)."""

from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cotrail.core.actions.generate import Read, Reason
from cotrail.core.demonstrations import AnswerForm, Shots, whole_prompts
from cotrail.core.questions import Question
from cotrail.core.system import System
from cotrail.systems.parts.majority import CountedAnswer, Votes
from cotrail.systems.without_retrieval import RECITE, ReciteSettings, passages_of, recite
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import Ran, ToldModel, ran
from tests.unit.test_budgets import driven

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
SHOTS: Shots = {
    AnswerForm.PROMPT: whole_prompts(
        {"passages": "Recite: {question}\nAnswer 1:", "read": "{passages}\nAsked: {question}\nThe answer is"}
    )
}
RECITED = " Brenn. It lies on the Vell.\nAnswer 2: Vell. It ends in the Amber Sea.\n"
TWO = ("Brenn. It lies on the Vell.", "Vell. It ends in the Amber Sea.")


def opened(**changes: Any) -> System:
    return recite(QUESTION, SHOTS, ReciteSettings(**{"samples": 3} | changes))


def told(*lines: str, **changes: Any) -> Ran:
    return ran(partial(opened, **changes), lines)


def test_passages_are_recited_several_times_and_each_time_read() -> None:
    done = told(f"{RECITED}\n\n\nQuestion: Who?", " Holm. ", "Brenn.", "the Amber Sea.", "Black Sea", "Amber sea")
    recited = [each for each in done.actions if isinstance(each, Reason)]
    assert [(each.sample, each.temperature, each.max_tokens, each.stop) for each in recited] == [
        (number, 0.7, 128, ("\n\n\n", "\nQuestion:")) for number in range(3)
    ]
    read = [each for each in done.actions if isinstance(each, Read)]
    assert {(each.sample, each.temperature, each.max_tokens, each.until) for each in read} == {(None, 0.0, 16, "line")}
    asked = f"\nAsked: {QUESTION.text}\nThe answer is"
    assert done.prompts == [
        *[f"Recite: {QUESTION.text}\nAnswer 1:"] * 3,
        *["\n".join(TWO) + asked, f"Holm.{asked}", f"Brenn.{asked}"],
    ]
    assert done.answer.text == "the Amber Sea"
    assert done.answer.sentences == TWO
    assert done.answer.details == Votes(
        answers=("the Amber Sea", "Black Sea", "Amber sea"),
        counted=(CountedAnswer(answer="the Amber Sea", votes=2), CountedAnswer(answer="Black Sea", votes=1)),
        chosen=0,
    )


def test_of_answers_with_equal_votes_the_shorter_one_wins_and_empty_ones_do_not_count() -> None:
    assert told("A.", "B.", "C.", "the long one", "", "short").answer.text == "short"


def test_a_sample_that_recites_nothing_is_read_too() -> None:
    done = told("", " \nAnswer 2: \n", "A.", "no", "no", "yes")
    assert (len(done.actions), done.answer.text, done.answer.sentences) == (6, "no", ())
    assert done.prompts[3].startswith("\nAsked")


def test_without_any_passages_the_model_answers_by_what_it_knows() -> None:
    assert told("", "", "", "yes", "no", "yes").answer.text == "yes"
    assert told(*[""] * 6).answer.text == ""


@each_case(
    ("text", "passages"),
    [
        ("", ()),
        (" \n\t\n", ()),
        ("Answer 1:", ()),
        ("a\n\nAnswer 12: b ", ("a", "b")),
        ("Answer 123: a", ("Answer 123: a",)),
        ("a Answer 2: b", ("a  b",)),
    ],
)
def test_passages_are_lines_without_their_labels(text: str, passages: tuple[str, ...]) -> None:
    assert passages_of(text) == passages


def test_own_words_end_where_the_model_goes_on() -> None:
    assert RECITE["passages"].endswith("\nAnswer 1:")
    assert RECITE["read"].endswith("Question: {question}\nThe answer is")


@each_case(("after", "prompt"), [(0, "\nAsked"), (3, "A.\nAsked")])
def test_a_budget_leaves_one_reading(after: int, prompt: str) -> None:
    world = MadeUp(ToldModel((["A."] * after) + ["yes"] * 4))
    steps, answer = driven(opened, after, world)  # type: ignore[arg-type]
    last = steps[-1]
    assert isinstance(last, Read)
    assert last.prompt.render().startswith(prompt)
    assert (len(steps), answer.text, answer.limit) == (after + 1, "yes", "tokens")


@settings(max_examples=40)
@given(st.lists(st.text() | st.sampled_from(["Answer 1:", "\nQuestion:", "\n\n\n"]), min_size=4, max_size=4))
def test_any_texts_end_after_as_many_readings_as_recitations(lines: list[str]) -> None:
    done = told(*lines, samples=2)
    assert len(done.actions) == 4
    assert done.answer.text == "" or any(done.answer.text in each for each in lines)
