"""Searches called within a text, held against the form of the calls of Toolformer's paper (section 2)."""

from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm, Shots, whole_prompts
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import System
from cotrail.systems.toolformer import OWN, ToolformerSettings, step_bounds, toolformer
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import Ran, ToldModel, ran
from tests.unit.test_budgets import driven

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
FOUND = {"Vell": (VELL,), "nothing": ()}
SHOTS: Shots = {AnswerForm.PROMPT: whole_prompts({"ask": "{examples}\n\nQ: {question}\nA:", "examples": "Examples."})}
FIRST = f"Examples.\n\nQ: {QUESTION.text}\nA:"
CALL = ' It ends in [Search("Vell")] → Made up.'


def opened(**settings: Any) -> System:
    return toolformer(QUESTION, SHOTS, ToolformerSettings(**settings))


def told(*lines: str, **settings: Any) -> Ran:
    return ran(partial(opened, **settings), lines, FOUND)


def test_what_a_call_finds_stands_behind_it_and_the_text_goes_on() -> None:
    done = told(CALL, "the Amber Sea. So the answer is: the Amber Sea.\nQuestion: Who?")
    assert done.prompts == [FIRST, f'{FIRST} It ends in [Search("Vell")] → Vell: It ends in the Amber Sea.\n']
    assert (done.answer.text, done.answer.limit) == ("the Amber Sea", "")
    assert done.answer.sentences == ("It ends in", "the Amber Sea. So the answer is: the Amber Sea.")
    assert done.answer.paragraphs == (VELL,)


@each_case(
    ("said", "answer"),
    [
        (" The Amber Sea.", "The Amber Sea"),
        (" The answer is Ada. So the answer is: Bo.", "Bo"),
        ("", ""),
        (" \n ", ""),
        (' [Search("Vell"', '[Search("Vell"'),
        (' f("x")] 1', 'f("x'),
        (" [Search(Vell)] → the Amber Sea", "[Search(Vell)] → the Amber Sea"),
    ],
)
def test_a_text_without_a_call_is_the_answer_or_states_it(said: str, answer: str) -> None:
    done = told(said)
    assert not done.asked(Retrieve)
    assert (done.answer.text, done.answer.limit) == (answer, "")


@each_case(("query", "searches"), [("nothing", 1), ("", 0)])
def test_a_search_that_finds_nothing_leaves_its_arrow_alone(query: str, searches: int) -> None:
    done = told(f' It is [Search("{query}")]', "unknown.")
    assert done.prompts[1] == f'{FIRST} It is [Search("{query}")] →\n'
    assert (len(done.asked(Retrieve)), done.answer.text) == (searches, "unknown")


@each_case(
    ("written", "query"),
    [
        (r"who said \"Vell\"", 'who said "Vell"'),
        (r"a\\b \n", r"a\b \n"),
        (r"a\\\"b", 'a\\"b'),
        ("a\\", "a\\"),
        (r"\"\"", '""'),
    ],
)
def test_a_query_is_searched_for_without_its_escapes_and_stays_as_it_was_written(written: str, query: str) -> None:
    lines = (f'[Search("{written}")]', "x")
    done = told(*lines)
    assert [each.query for each in done.actions if isinstance(each, Retrieve)] == [query]
    assert done.prompts[1].startswith(f'{FIRST}[Search("{written}")] →')


def test_the_same_call_for_ever_ends_at_the_most_searches_without_an_answer() -> None:
    done = told(*[CALL] * 3, searches=2)
    assert len(done.asked(Retrieve)) == 2
    assert (done.answer.text, done.answer.limit) == ("", "searches")


def test_own_examples_are_four_one_without_a_call() -> None:
    done = ran(lambda: toolformer(QUESTION, {}, ToolformerSettings()), ["x"])
    assert OWN["examples"] in done.prompts[0]
    assert OWN["examples"].count("So the answer is:") == 4
    assert sum("[Search(" not in each for each in OWN["examples"].split("\n\n")) == 1


@each_case("after", range(4))
def test_a_budget_ends_it_with_what_was_stated_if_anything(after: int) -> None:
    lines = [f"So the answer is Bo.\n{CALL}"] * ((after + 1) // 2)
    asked, answer = driven(opened, after, MadeUp(ToldModel(lines), FOUND))  # type: ignore[arg-type]
    assert len(asked) == after
    assert (answer.text, answer.limit) == ("Bo" if after else "", "tokens")


TEXTS = st.one_of(st.text(max_size=60), st.sampled_from([CALL, '[Search("nothing")]', '[Search("[Search("")]']))


@given(st.lists(TEXTS, min_size=1, max_size=5), st.integers(1, 3))
def test_any_texts_end_within_the_limits(lines: list[str], searches: int) -> None:
    settings = ToolformerSettings(searches=searches)
    world = MadeUp(ToldModel(lines * 5), FOUND)
    asked, answer = driven(lambda: toolformer(QUESTION, SHOTS, settings), None, world)  # type: ignore[arg-type]
    bounds = {each.kind: each.times for each in step_bounds(QUESTION, settings)}
    assert sum(isinstance(each, Reason) for each in asked) <= bounds["reason"]
    assert sum(isinstance(each, Retrieve) for each in asked) <= bounds["retrieve"]
    assert not answer.text or any(answer.text in line for line in lines)
