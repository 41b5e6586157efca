"""Direct prompting and Direct Retrieval: one prompt, with or without paragraphs."""

from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.actions.generate import Read
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm, Shots, whole_prompts
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.core.system import System
from cotrail.systems.one_round import DirectRetrievalSettings, direct_retrieval
from cotrail.systems.parts.searching import SearchSettings
from cotrail.systems.without_retrieval import DIRECT, DirectSettings, direct
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import Ran, ToldModel, ran
from tests.unit.test_budgets import driven

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
FOUND = {QUESTION.text: (BRENN, VELL)}
SHOTS: Shots = {AnswerForm.PROMPT: whole_prompts({"prompt": "{paragraphs}Asked: {question}"})}


def asked(line: str, shots: Shots = SHOTS, **settings: Any) -> Ran:
    return ran(partial(direct, QUESTION, shots, DirectSettings(**settings)), [line])


def retrieving(question: Question = QUESTION, **settings: Any) -> System:
    return direct_retrieval(question, SHOTS, DirectRetrievalSettings(**settings))


def test_the_question_is_asked_in_one_turn_and_the_text_is_the_answer() -> None:
    done = asked("The Amber Sea.", shots={}, max_tokens=9, temperature=0.5)
    [action] = done.actions
    assert isinstance(action, Read)
    [turn] = action.prompt.turns
    assert (turn.role, turn.text) == ("user", DIRECT["prompt"].replace("{question}", QUESTION.text))
    assert (action.max_tokens, action.temperature, action.until) == (9, 0.5, "end")
    assert (done.answer.text, done.answer.limit) == ("The Amber Sea", "")


@each_case(
    ("written", "text"),
    [
        ("", ""),
        (" \n ", ""),
        ("So the answer is the Amber Sea.", "the Amber Sea"),
        ("The answer is: A. No, the answer is: B.", "B"),
        ("the answer is", ""),
    ],
)
def test_a_stated_answer_goes_before_the_sentence_around_it(written: str, text: str) -> None:
    assert asked(written).answer.text == text


@given(st.text())
def test_any_text_is_an_answer_of_its_own_words(written: str) -> None:
    assert asked(written).answer.text in written


def test_retrieval_shows_the_best_paragraphs_of_the_question() -> None:
    done = ran(partial(retrieving, search=SearchSettings(count=2, paragraph_words=2)), ["the Amber Sea"], FOUND)
    assert [(each.query, each.count) for each in done.actions if isinstance(each, Retrieve)] == [(QUESTION.text, 2)]
    [prompt] = [each.prompt.turns[0].text for each in done.actions if isinstance(each, Read)]
    assert prompt == f"Paragraph 1: Brenn\nBrenn lies\n\nParagraph 2: Vell\nIt ends\n\nAsked: {QUESTION.text}"
    assert (done.answer.text, done.answer.paragraphs) == ("the Amber Sea", (BRENN, VELL))


def test_a_pinned_passage_stands_first() -> None:
    question = replace(QUESTION, pinned=GoldParagraph(title="Pin", text="Pinned."))
    done = ran(partial(retrieving, question), ["yes"], FOUND)
    assert "Paragraph 1: Pin\\nPinned.\\n\\nParagraph 2: Brenn" in done.prompts[0]
    assert done.answer.paragraphs == (BRENN, VELL)


@each_case(("after", "paragraphs"), [(0, ()), (1, (BRENN, VELL))])
def test_a_budget_leaves_the_one_prompt(after: int, paragraphs: tuple[Paragraph, ...]) -> None:
    world = MadeUp(ToldModel(["the Amber Sea"] * 3), FOUND)
    steps, answer = driven(retrieving, after, world)  # type: ignore[arg-type]
    assert (len(steps), answer.text, answer.paragraphs) == (after + 1, "the Amber Sea", paragraphs)


def test_a_budget_of_nothing_leaves_the_question_itself() -> None:
    world = MadeUp(ToldModel(["yes"]))
    steps, answer = driven(partial(direct, QUESTION, SHOTS, DirectSettings()), 0, world)  # type: ignore[arg-type]
    assert (len(steps), answer.text) == (1, "yes")
