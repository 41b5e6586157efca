"""Least-to-Most prompting, held against its paper: decomposition, and answers that build on one another."""

from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm, Shots, whole_prompts
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.core.system import System
from cotrail.systems.decomposition import LEAST_TO_MOST, LeastToMostSettings, least_to_most
from cotrail.systems.parts.answers import sub_questions
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import Ran, ToldModel, ran
from tests.unit.test_budgets import driven

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
SHOTS: Shots = {AnswerForm.PROMPT: whole_prompts({"decompose": "Split: {question}", "solve": "Examples."})}
WHICH, WHERE = "Which river is Brenn's?", "Where does the Vell end?"
PLAN = f' "{WHICH}", "{WHERE}".'
FOUND = {WHICH: (BRENN,), WHERE: (VELL, BRENN), QUESTION.text: ()}
FIRST, SECOND, LAST = "The answer is the Vell.", "In the Amber Sea. The answer is the Amber Sea.", "It ends there."


def opened(question: Question = QUESTION, **changes: Any) -> System:
    return least_to_most(question, SHOTS, LeastToMostSettings(**changes))


def told(*lines: str, **changes: Any) -> Ran:
    return ran(partial(opened, **changes), lines, FOUND)


def test_each_question_stands_behind_those_before_it_with_their_answers_and_the_question_is_the_last() -> None:
    done = told(PLAN, FIRST, SECOND, "The answer is the Amber Sea.")
    before = "Examples.\n"
    asked = f"{before}\nQ: {WHICH}\nA:"
    then = f"{asked} {FIRST}\nQ: {WHERE}\nA:"
    assert done.prompts == [f"Split: {QUESTION.text}", asked, then, f"{then} {SECOND}\nQ: {QUESTION.text}\nA:"]
    assert [(each.max_tokens, each.until) for each in done.actions if isinstance(each, Reason)] == [
        (256, "chain"),
        *[(64, "line")] * 3,
    ]
    assert (done.answer.text, done.answer.limit) == ("the Amber Sea", "")
    assert done.answer.sentences == (FIRST, SECOND, "The answer is the Amber Sea.")


@each_case("plan", ["", " ", "I don't know.", f'"{QUESTION.text}"', '"cut off', f"1. {QUESTION.text}"])
def test_a_plan_without_sub_questions_leaves_the_question(plan: str) -> None:
    done = told(plan, "It is unknown.")
    assert len(done.actions) == 2
    assert done.answer.text == "It is unknown"


def test_there_are_no_more_sub_questions_than_the_settings_say() -> None:
    done = told("1. One?\n2. Two?\n3. Three?", *["yes"] * 3, sub_questions=2)
    assert [prompt.rpartition("Q: ")[2] for prompt in done.prompts[1:]] == [
        "One?\nA:",
        "Two?\nA:",
        f"{QUESTION.text}\nA:",
    ]


def test_with_retrieval_each_question_has_what_its_search_finds_before_it() -> None:
    done = told(PLAN, FIRST, SECOND, LAST, retrieve=True)
    assert [each.query for each in done.actions if isinstance(each, Retrieve)] == [WHICH, WHERE, QUESTION.text]
    assert done.prompts[2].endswith(
        f"\nBrenn: {BRENN.text}\nQ: {WHICH}\nA: {FIRST}\nVell: {VELL.text}\nBrenn: {BRENN.text}\nQ: {WHERE}\nA:"
    )
    assert (done.answer.text, done.answer.paragraphs) == ("It ends there", (BRENN, VELL))


def test_a_pinned_passage_stands_before_what_is_found() -> None:
    question = replace(QUESTION, pinned=GoldParagraph(title="Pin", text="Pinned."))
    done = ran(partial(opened, question, retrieve=True), [f'"{WHICH}"', FIRST, LAST], FOUND)
    assert done.prompts[1] == f"Examples.\n\nPin: Pinned.\nBrenn: {BRENN.text}\nQ: {WHICH}\nA:"


@each_case("after", [0, 1, 2, 3])
def test_a_budget_leaves_the_question_with_the_answers_so_far(after: int) -> None:
    lines = [PLAN, FIRST, SECOND][:after]
    world = MadeUp(ToldModel([*lines, LAST, LAST]), FOUND)
    steps, answer = driven(opened, after, world)  # type: ignore[arg-type]
    last = steps[-1]
    assert isinstance(last, Reason)
    assert last.prompt.render().endswith(f"\nQ: {QUESTION.text}\nA:")
    assert last.prompt.render().count("The answer is") == max(after - 1, 0)
    assert (len(steps), answer.text, answer.limit) == (after + 1, "It ends there", "tokens")


def test_own_words_have_the_questions_of_each_decomposition_and_its_solution() -> None:
    asked = [line.removeprefix("Q: ") for line in LEAST_TO_MOST["solve"].splitlines() if line.startswith("Q: ")]
    assert set(sub_questions(LEAST_TO_MOST["decompose"], 99)) - {"What is the capital of Iceland?"} <= set(asked)


@each_case(
    ("text", "found"),
    [
        ('1. "A?"\n2) B "c"?\n- C?\nthen 3. D', ("A?", 'B "c"?', "C?")),
        ('"A?", "A?" and "B?"', ("A?", "B?")),
        ('"A?", "B', ("A?",)),
        ('""  "', ()),
        ("1.\n2. ", ()),
    ],
)
def test_sub_questions_are_numbered_lines_or_else_quotations(text: str, found: tuple[str, ...]) -> None:
    assert sub_questions(text, 8) == found


@settings(max_examples=40)
@given(st.text() | st.lists(st.sampled_from(['"', "1. ", "\n", "x", " ", "-"])).map("".join), st.text())
def test_any_texts_end_within_the_limits(plan: str, said: str) -> None:
    world = MadeUp(ToldModel([plan, *[said] * 3]), FOUND)
    steps, answer = driven(partial(opened, sub_questions=2), None, world)  # type: ignore[arg-type]
    assert 2 <= len(steps) <= 4
    assert answer.text in said
