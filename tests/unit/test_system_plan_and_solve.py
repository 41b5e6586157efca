"""Plan-and-Solve with and without retrieval."""

from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.actions.generate import Prompted, Read, Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm, Shots, whole_prompts
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.core.system import System
from cotrail.systems.one_round import PlanAndSolveSettings, plan_and_solve
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import Ran, ToldModel, ran
from tests.unit.test_budgets import driven

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
SHOTS: Shots = {
    AnswerForm.PROMPT: whole_prompts(
        {
            "plan": "Plan: {question}",
            "solve": "{paragraphs}{plan}\nSolve: {question}",
            "think": "Think: {question}",
            "state": "Therefore",
        }
    )
}
PLAN = "My plan:\n1. Which river is Brenn's?\n2. Where does the Vell end?"
FOUND = {"Which river is Brenn's?": (BRENN,), "Where does the Vell end?": (VELL, BRENN), QUESTION.text: (BRENN,)}
SOLVED = "Brenn lies on the Vell. The answer is the Amber Sea."


def opened(question: Question = QUESTION, **changes: Any) -> System:
    return plan_and_solve(question, SHOTS, PlanAndSolveSettings(**changes))


def told(*lines: str, **changes: Any) -> Ran:
    return ran(partial(opened, **changes), lines, FOUND)


def last_turns(done: Ran) -> list[str]:
    return [each.prompt.turns[-1].text for each in done.actions if isinstance(each, Prompted)]


def test_the_plan_s_sub_questions_are_searched_for_at_once_and_then_solved() -> None:
    done = told(PLAN, SOLVED)
    assert [type(each) for each in done.actions] == [Reason, Retrieve, Retrieve, Reason]
    assert [each.query for each in done.actions if isinstance(each, Retrieve)] == list(FOUND)[:2]
    assert last_turns(done) == [
        f"Plan: {QUESTION.text}",
        f"Paragraph 1: Brenn\n{BRENN.text}\n\nParagraph 2: Vell\n{VELL.text}\n\n{PLAN}\nSolve: {QUESTION.text}",
    ]
    assert (done.answer.text, done.answer.paragraphs, done.answer.limit) == ("the Amber Sea", (BRENN, VELL), "")
    assert done.answer.sentences[-1] == "The answer is the Amber Sea."


@each_case("plan", ["", " \n", "No plan."])
def test_without_sub_questions_the_question_is_searched_for(plan: str) -> None:
    done = told(plan, SOLVED)
    assert [each.query for each in done.actions if isinstance(each, Retrieve)] == [QUESTION.text]


def test_no_more_sub_questions_are_searched_for_than_the_settings_say() -> None:
    assert len(told(PLAN, SOLVED, sub_questions=1).asked(Retrieve)) == 1


def test_without_retrieval_plan_and_solution_are_one_text() -> None:
    done = told(SOLVED, retrieve=False)
    assert last_turns(done) == [f"Think: {QUESTION.text}"]
    assert (done.answer.text, done.answer.paragraphs) == ("the Amber Sea", ())


@each_case("solution", ["I can't say.", "So the answer is", "The answer is: ."])
def test_a_solution_that_states_no_answer_is_asked_for_it(solution: str) -> None:
    done = told(solution, "the Amber Sea.", retrieve=False)
    last = done.actions[-1]
    assert isinstance(last, Read)
    assert [(turn.role, turn.text) for turn in last.prompt.turns] == [
        ("user", f"Think: {QUESTION.text}"),
        ("assistant", solution),
        ("user", "Therefore"),
    ]
    assert (last.max_tokens, last.until, done.answer.text) == (32, "line", "the Amber Sea")


def test_an_empty_solution_goes_on_in_the_same_turn() -> None:
    assert last_turns(told("", "yes", retrieve=False))[-1] == f"Think: {QUESTION.text}\n\nTherefore"


def test_a_pinned_passage_stands_first() -> None:
    question = replace(QUESTION, pinned=GoldParagraph(title="Pin", text="Pinned."))
    done = ran(partial(opened, question), [PLAN, SOLVED], FOUND)
    assert last_turns(done)[1].startswith("Paragraph 1: Pin\nPinned.\n\nParagraph 2: Brenn\n")


@each_case(("after", "begins", "paragraphs"), [(0, "Think", ()), (1, "Think", ()), (3, "Paragraph 1", (BRENN, VELL))])
def test_a_budget_leaves_the_extraction(after: int, begins: str, paragraphs: tuple[Paragraph, ...]) -> None:
    world = MadeUp(ToldModel([PLAN, "yes"] if after else ["yes"]), FOUND)
    steps, answer = driven(opened, after, world)  # type: ignore[arg-type]
    last = steps[-1]
    assert isinstance(last, Read)
    assert last.prompt.turns[0].text.startswith(begins)
    assert (len(steps), answer.text, answer.paragraphs, answer.limit) == (after + 1, "yes", paragraphs, "tokens")


@settings(max_examples=40)
@given(st.lists(st.text() | st.sampled_from(["1. a", "answer is", "answer is: x."]), min_size=3, max_size=3))
def test_any_texts_end_within_the_limits(lines: list[str]) -> None:
    steps, answer = driven(opened, None, MadeUp(ToldModel(lines), FOUND))  # type: ignore[arg-type]
    assert len(steps) <= 3 + 8
    assert any(answer.text in each for each in lines)
