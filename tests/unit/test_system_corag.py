"""CoRAG, held against section 3 of its paper and the rules of its authors' code."""

from functools import partial
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.actions.generate import Prompted, Read, Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm, Shots, whole_prompts
from cotrail.core.prompts import Shown
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.core.system import System
from cotrail.systems.corag import DRAWS, CoragSettings, bare_query, corag
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import Ran, ToldModel, ran
from tests.unit.test_budgets import driven

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
RIVER, SEA = "Which river flows through Brenn?", "Where does the Vell end?"
FOUND = {QUESTION.text: (BRENN, VELL), RIVER: (BRENN,), SEA: (VELL, BRENN)}
WORDS = {
    "answer": "{paragraphs}|{path}|{question}",
    "intermediate": "{paragraphs}|{query}",
    "query": "{path}|{question}",
}
SHOTS: Shots = {AnswerForm.PROMPT: whole_prompts(WORDS)}
FIRST = f"Intermediate query 1: {RIVER}\nIntermediate answer 1: The Vell.\n"
SECOND = f"Intermediate query 2: {SEA}\nIntermediate answer 2: In the Amber Sea.\n"


def opened(question: Question = QUESTION, **settings: Any) -> System:
    return corag(question, SHOTS, CoragSettings(**settings))


def told(*lines: str, **settings: Any) -> Ran:
    return ran(partial(opened, **settings), lines, FOUND)


def contents(done: Ran) -> list[str]:
    """The prompts, each of which is a message of the user's."""
    messages = [msgspec.json.decode(each)["messages"] for each in done.prompts]
    assert [[each["role"] for each in conversation] for conversation in messages] == [["user"]] * len(messages)
    return [conversation[0]["content"] for conversation in messages]


def test_every_sub_query_is_answered_from_what_it_finds_and_the_question_from_the_path_and_its_own_documents() -> None:
    done = told(RIVER, "The Vell.", SEA, "In the Amber Sea.", "Amber Sea", queries=2)
    brenn, vell = f"Brenn\n{BRENN.text}\n\n", f"Vell\n{VELL.text}\n\n"
    assert contents(done) == [
        f"None\n|{QUESTION.text}",
        f"{brenn}|{RIVER}",
        f"{FIRST}|{QUESTION.text}",
        f"{brenn}{vell}|{SEA}",
        f"{vell}{brenn}|{FIRST}{SECOND}|{QUESTION.text}",
    ]
    assert [(each.query, each.count) for each in done.actions if isinstance(each, Retrieve)] == [
        (QUESTION.text, 20),
        (RIVER, 5),
        (SEA, 5),
    ]
    assert [each.max_tokens for each in done.actions if isinstance(each, Prompted)] == [64, 64, 64, 64, 128]
    assert {(each.temperature, each.sample) for each in done.actions if isinstance(each, Prompted)} == {(0.0, None)}
    assert (done.answer.text, done.answer.limit) == ("Amber Sea", "")
    assert done.answer.sentences == (f"{RIVER} The Vell.", f"{SEA} In the Amber Sea.")
    assert done.answer.paragraphs == (BRENN, VELL)


def test_the_best_paragraph_stands_last_and_stays_longest() -> None:
    done = told(SEA, "In the Amber Sea.", "Amber Sea", queries=1)
    [*_, last] = [each for each in done.actions if isinstance(each, Read)]
    pieces = [each for each in last.prompt.pieces if isinstance(each, Shown)]
    assert [(each.paragraph, each.yields) for each in pieces] == [(VELL, 2), (BRENN, 1)]


def test_a_sub_query_that_was_asked_before_is_drawn_again_warmer_and_never_searched_for() -> None:
    done = told(RIVER, "The Vell.", RIVER, "", SEA, "In the Amber Sea.", "Amber Sea", queries=2)
    asked = [each for each in done.actions if isinstance(each, Reason) and each.prompt.question == QUESTION.text]
    assert [(each.sample, each.temperature) for each in asked] == [(None, 0.0), (None, 0.0), (2, 0.7), (3, 0.7)]
    assert [each.query for each in done.actions if isinstance(each, Retrieve)] == [QUESTION.text, RIVER, SEA]


def test_a_model_that_asks_the_same_for_ever_is_asked_four_times_a_place_and_then_answers() -> None:
    done = told(RIVER, "The Vell.", *[RIVER] * (2 * DRAWS - 1), "Amber Sea", queries=2)
    assert (done.answer.text, done.answer.limit) == ("Amber Sea", "calls")
    assert len(done.answer.sentences) == 1


@each_case(
    ("text", "query"),
    [
        (' "Who is it?"\n', "Who is it?"),
        ('"Intermediate query 12: Who is it?"', "Who is it?"),
        ("Intermediate query: Who is it?", "Intermediate query: Who is it?"),
        ('"', '"'),
        ('""', ""),
        (" \n", ""),
        ('"A" or "B"?', '"A" or "B"?'),
    ],
)
def test_a_query_is_freed_of_quotation_marks_and_its_number(text: str, query: str) -> None:
    assert bare_query(text) == query


def test_a_pinned_passage_stands_among_the_documents_whatever_is_found() -> None:
    question = replace(QUESTION, pinned=GoldParagraph(title="Pin", text="Pinned."))
    done = ran(partial(opened, question, queries=1), [RIVER, "The Vell.", "Amber Sea"], FOUND)
    assert ["Pin\nPinned.\n\n|" in each for each in contents(done)] == [False, True, True]


@each_case("after", range(6))
def test_a_budget_ends_the_path_and_the_question_is_answered_from_it(after: int) -> None:
    world = MadeUp(ToldModel([RIVER, "The Vell.", SEA, "In the Amber Sea.", "Amber Sea"] * 9), FOUND)
    asked, answer = driven(opened, after, world)  # type: ignore[arg-type]
    assert len(asked) == after + 1
    assert isinstance(asked[-1], Read)
    assert (answer.limit, len(answer.sentences)) == ("tokens", after >= 4)
    assert answer.text


@given(st.lists(st.text(max_size=20) | st.just('"Intermediate query 1: '), min_size=17, max_size=17))
def test_any_texts_end_within_the_limits(lines: list[str]) -> None:
    world = MadeUp(ToldModel(lines), FOUND)
    asked, answer = driven(partial(opened, queries=3), None, world)  # type: ignore[arg-type]
    assert sum(isinstance(each, Prompted) for each in asked) <= DRAWS * 3 + 3 + 1
    assert len(answer.sentences) == 3 or answer.limit == "calls"
    assert answer.text in [each.strip() for each in lines]
