"""ITER-RETGEN, held against section 3 of its paper."""

from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm, Shots, whole_prompts
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.core.system import System
from cotrail.systems.written_queries import ITER_RETGEN, IterRetGenSettings, iter_retgen
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import Ran, ToldModel, ran
from tests.unit.test_budgets import driven

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
FIRST = " Brenn lies on the Vell.\nSo the answer is: the Black Sea."
SECOND = "Brenn lies on the Vell. It ends in the Amber Sea. So the answer is the Amber Sea."
QUERY = f"{QUESTION.text} Brenn lies on the Vell. So the answer is: the Black Sea."
FOUND = {QUESTION.text: (BRENN,), QUERY: (VELL, BRENN)}
ASKED = f"Question: {QUESTION.text}\nAnswer: Let's think step by step."
WORDS = {
    "answer": f"{{examples}}\n\n{{paragraphs}}{ASKED.replace(QUESTION.text, '{question}')}",
    "examples": "Examples.",
}
SHOTS: Shots = {AnswerForm.PROMPT: whole_prompts(WORDS)}


def opened(question: Question = QUESTION, **settings: Any) -> System:
    return iter_retgen(question, SHOTS, IterRetGenSettings(**settings))


def told(*lines: str, **settings: Any) -> Ran:
    return ran(partial(opened, **settings), lines, FOUND)


def test_a_round_searches_with_the_question_and_what_was_written_and_shows_what_that_finds_alone() -> None:
    done = told(f"{FIRST}\nQuestion: a made-up one", SECOND)
    assert done.prompts == [
        f"Examples.\n\nParagraph 1: Brenn\n{BRENN.text}\n\n{ASKED}",
        f"Examples.\n\nParagraph 1: Vell\n{VELL.text}\n\nParagraph 2: Brenn\n{BRENN.text}\n\n{ASKED}",
    ]
    assert [(each.query, each.count) for each in done.actions if isinstance(each, Retrieve)] == [
        (QUESTION.text, 5),
        (QUERY, 5),
    ]
    assert [(each.stop, each.max_tokens) for each in done.actions if isinstance(each, Reason)] == [
        (("\nQuestion:",), 256),
        (("\nQuestion:",), 256),
    ]
    assert (done.answer.text, done.answer.limit) == ("the Amber Sea", "")
    assert done.answer.paragraphs == (BRENN, VELL)
    assert done.answer.sentences[-1] == "So the answer is the Amber Sea."


def test_a_single_round_is_a_search_with_the_question() -> None:
    done = told(FIRST, rounds=1)
    assert (done.answer.text, done.answer.paragraphs) == ("the Black Sea", (BRENN,))


@each_case("written", ["", "  \n ", "It is unknown.", "So the answer is", "So the answer is: ."])
def test_a_chain_that_states_nothing_is_no_answer(written: str) -> None:
    assert told(FIRST, written).answer.text == ""


def test_where_nothing_was_written_the_question_is_searched_for_again() -> None:
    done = told(" ", SECOND)
    assert [each.query for each in done.actions if isinstance(each, Retrieve)] == [QUESTION.text] * 2


def test_a_pinned_passage_stands_before_what_is_found() -> None:
    question = replace(QUESTION, pinned=GoldParagraph(title="Pin", text="Pinned."))
    done = ran(partial(opened, question, rounds=1), [""], FOUND)
    assert done.prompts[0].startswith("Examples.\n\nParagraph 1: Pin\nPinned.\n\nParagraph 2: Brenn\n")


def test_own_words_have_four_solved_questions() -> None:
    assert ITER_RETGEN["examples"].count("Let's think step by step.") == 4


@each_case(("after", "text"), [(0, ""), (1, ""), (2, "the Black Sea"), (3, "the Black Sea")])
def test_a_budget_ends_it_with_the_last_round_s_answer(after: int, text: str) -> None:
    world = MadeUp(ToldModel([FIRST, SECOND] * 9), FOUND)
    asked, answer = driven(opened, after, world)  # type: ignore[arg-type]
    assert (len(asked), answer.text, answer.limit) == (after, text, "tokens")


PIECES = ["So the answer is", ":", " ", "\n", ".", "x", "\nQuestion:", "\u0130"]
TEXTS = st.text() | st.lists(st.sampled_from(PIECES)).map("".join)


@given(st.lists(TEXTS, min_size=3, max_size=3))
def test_any_texts_end_after_the_rounds(lines: list[str]) -> None:
    done = told(*lines, rounds=3)
    assert len(done.actions) == 6
    assert done.answer.text in lines[-1]
