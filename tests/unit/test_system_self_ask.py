"""Self-Ask, held against the protocol of its paper (figure 3 and section 4) and the rules of its authors' code."""

from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.actions.generate import Prompted, Read, Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm, Shots, whole_prompts
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import System
from cotrail.systems.decomposition import (
    FINAL,
    INTERMEDIATE,
    SELF_ASK,
    SelfAskSettings,
    run_needs,
    self_ask,
    self_ask_bounds,
)
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import Ran, ToldModel, ran
from tests.unit.test_budgets import driven

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
RIVER, SEA = "Which river flows through Brenn?", "Where does the Vell end?"
FOUND = {RIVER: (BRENN,), SEA: (VELL,), "Who?": ()}
SHOTS: Shots = {AnswerForm.PROMPT: whole_prompts({"examples": "Examples."})}
FIRST = f"Examples.\n\nQuestion: {QUESTION.text}\nAre follow up questions needed here:"
ASKS_RIVER, ASKS_SEA = f" Yes.\nFollow up: {RIVER}", f"\nFollow up: {SEA}"


def opened(**settings: Any) -> System:
    return self_ask(QUESTION, SHOTS, SelfAskSettings(**settings))


def told(*lines: str, **settings: Any) -> Ran:
    return ran(partial(opened, **settings), lines, FOUND)


def test_a_search_answers_in_the_models_place() -> None:
    done = told(f"{ASKS_RIVER}{INTERMEDIATE} A made-up one.", ASKS_SEA, f"\n{FINAL} the Amber Sea.")
    second = f"{FIRST}{ASKS_RIVER}\nIntermediate answer: Brenn: Brenn lies on the Vell."
    third = f"{second}{ASKS_SEA}\nIntermediate answer: Vell: It ends in the Amber Sea."
    assert done.prompts == [FIRST, second, third]
    assert [each.query for each in done.asked(Retrieve) if isinstance(each, Retrieve)] == [RIVER, SEA]
    assert all(isinstance(each, Reason) and each.max_tokens == 256 for each in done.asked(Reason))
    assert (done.answer.text, done.answer.limit) == ("the Amber Sea", "")
    assert done.answer.paragraphs == (BRENN, VELL)
    assert done.answer.sentences[-1] == f"{FINAL} the Amber Sea."


def test_a_reader_answers_from_what_was_found() -> None:
    done = told(ASKS_RIVER, "the Vell.", f"\n{FINAL} none", answers="reader")
    assert [type(each) for each in done.actions] == [Reason, Retrieve, Read, Reason]
    assert done.prompts[1].endswith(f"Brenn\n{BRENN.text}\n\nQuestion: {RIVER}\nAnswer:")
    assert done.prompts[2] == f"{FIRST}{ASKS_RIVER}\nIntermediate answer: the Vell."


@each_case(("answers", "read"), [("passages", []), ("reader", [])])
def test_where_nothing_is_found_the_model_answers_itself_and_goes_on(answers: str, read: list[str]) -> None:
    lines = [" Yes.\nFollow up: Who?", *read, " Ada.\nFollow up: Where?", f"\n{FINAL} Brenn"]
    done = told(*lines, answers=answers)
    asked = f"{FIRST} Yes.\nFollow up: Who?\nIntermediate answer:"
    assert done.prompts == [FIRST, asked, f"{asked} Ada."]
    assert done.answer.text == "Brenn"


def test_where_the_reader_reads_nothing_the_model_answers_itself() -> None:
    done = told(ASKS_RIVER, "", " the Oder.", f"\n{FINAL} Brenn", answers="reader")
    assert done.prompts[-1] == f"{FIRST}{ASKS_RIVER}\nIntermediate answer: the Oder."


def test_without_retrieval_the_model_writes_one_text() -> None:
    whole = f"{ASKS_RIVER}{INTERMEDIATE} the Oder.\n{FINAL} the Black Sea."
    done = told(f"{whole}\n\nQuestion: Who?", retrieve=False)
    assert done.prompts == [FIRST]
    assert (done.answer.text, done.answer.paragraphs) == ("the Black Sea", ())
    assert not run_needs(SelfAskSettings(retrieve=False)).corpus


@each_case("said", ["", "  \n", " No.", "Follow up:", '{"final": "Am'])
def test_a_text_without_an_answer_is_led_to_it(said: str) -> None:
    done = told(said, "Amber Sea.\nMore.")
    assert done.prompts[1] == f"{FIRST}{said}\n{FINAL}"
    assert (done.answer.text, done.answer.limit) == ("Amber Sea", "")


def test_a_colon_within_question_or_answer_belongs_to_it() -> None:
    done = ran(opened, [" Yes.\nFollow up: Who wrote Vell: A River?", f"\n{FINAL} Ada: the elder."])
    (searched,) = done.asked(Retrieve)
    assert isinstance(searched, Retrieve)
    assert searched.query == "Who wrote Vell: A River?"
    assert done.answer.text == "Ada: the elder"


def test_the_same_question_for_ever_ends_at_the_most_searches() -> None:
    done = told(*[ASKS_RIVER] * 3, "the Amber Sea", follow_ups=2)
    assert len(done.asked(Retrieve)) == 2
    assert done.prompts[-1].endswith(f"{ASKS_RIVER}\n{FINAL}")
    assert (done.answer.text, done.answer.limit) == ("the Amber Sea", "searches")


def test_own_examples_are_four_and_follow_the_protocol() -> None:
    done = ran(lambda: self_ask(QUESTION, {}, SelfAskSettings()), [f" No.\n{FINAL} x"])
    assert done.prompts[0].startswith(SELF_ASK["examples"])
    assert SELF_ASK["examples"].count(FINAL) == SELF_ASK["examples"].count("Are follow up questions needed here:") == 4


@each_case("after", range(5))
def test_a_budget_ends_it_with_one_last_step(after: int) -> None:
    lines = [*[ASKS_RIVER] * ((after + 1) // 2), "Amber Sea"]
    asked, answer = driven(opened, after, MadeUp(ToldModel(lines), FOUND))  # type: ignore[arg-type]
    assert len(asked) == after + 1
    assert (answer.text, answer.limit) == ("Amber Sea", "tokens")
    assert answer.paragraphs == (BRENN,) * (after >= 2)


TEXTS = st.one_of(st.text(max_size=60), st.sampled_from([ASKS_RIVER, ASKS_SEA, " Yes.\nFollow up: Who?", FINAL]))


@given(st.lists(TEXTS, min_size=1, max_size=5), st.sampled_from(["passages", "reader"]), st.integers(1, 3))
def test_any_texts_end_within_the_limits(lines: list[str], answers: Any, follow_ups: int) -> None:
    settings = SelfAskSettings(answers=answers, follow_ups=follow_ups)
    world = MadeUp(ToldModel(lines * 20), FOUND)
    asked, answer = driven(lambda: self_ask(QUESTION, SHOTS, settings), None, world)  # type: ignore[arg-type]
    bounds = {each.kind: each.times for each in self_ask_bounds(QUESTION, settings)}
    assert sum(type(each) is Reason for each in asked) <= bounds["reason"]
    assert sum(isinstance(each, Retrieve) for each in asked) <= bounds["retrieve"]
    assert all(each.max_tokens <= 256 for each in asked if isinstance(each, Prompted))
    assert not answer.text or any(answer.text in line for line in lines)
