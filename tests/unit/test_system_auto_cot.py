"""Auto-CoT: the prompt, and the answer of a chain."""

from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import AnswerForm, Demonstration, Demonstrations
from cotrail.core.questions import Question
from cotrail.core.system import System
from cotrail.systems.without_retrieval import AutoCoTSettings, auto_cot
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import Ran, ToldModel, ran
from tests.unit.test_budgets import driven

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
SHOTS = {
    AnswerForm.COT: Demonstrations(
        items=tuple(
            Demonstration(
                id=name,
                paragraphs=(),
                question=f"Where is {name}?",
                answer=f"Let's think step by step. {name} is in Ostmark. The answer is Ostmark.",
            )
            for name in ("Holm", "Vell")
        )
    )
}


def opened(**settings: Any) -> System:
    return auto_cot(QUESTION, SHOTS, AutoCoTSettings(**settings))


def told(line: str, **settings: Any) -> Ran:
    return ran(partial(opened, **settings), [line])


def test_the_question_stands_behind_the_demonstrations_with_the_beginning_of_its_chain() -> None:
    done = told("Brenn lies on the Vell. The answer is the Amber Sea.\n\nQ: Where?", max_tokens=99)
    shown = [
        f"Q: Where is {name}?\nA: Let's think step by step. {name} is in Ostmark. The answer is Ostmark.\n\n"
        for name in ("Holm", "Vell")
    ]
    assert done.prompts == [f"{''.join(shown)}Q: {QUESTION.text}\nA: Let's think step by step."]
    assert [(each.until, each.max_tokens) for each in done.actions if isinstance(each, Reason)] == [("chain", 99)]
    assert done.answer.text == "the Amber Sea"
    assert done.answer.sentences == ("Brenn lies on the Vell.", "The answer is the Amber Sea.")


@each_case("chain", ["", " ", "It is unknown.", "The answer is"])
def test_a_chain_that_states_nothing_is_no_answer(chain: str) -> None:
    assert told(chain).answer.text == ""


@given(st.text())
def test_any_chain_ends_after_one_call(chain: str) -> None:
    assert told(chain).answer.text in chain


def test_a_budget_of_nothing_leaves_the_chain() -> None:
    steps, answer = driven(opened, 0, MadeUp(ToldModel(["The answer is yes."])))  # type: ignore[arg-type]
    assert (len(steps), answer.text) == (1, "yes")
