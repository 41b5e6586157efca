"""Zero-shot chain of thought, held against section 3.1 of Kojima et al. (2022)."""

from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.actions.generate import Prompted
from cotrail.core.questions import Question
from cotrail.core.system import System
from cotrail.systems.without_retrieval import ZeroShotChainSettings, zero_shot_chain_of_thought
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import Ran, ToldModel, ran
from tests.unit.test_budgets import driven

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
CHAIN = "1. Brenn lies on the Vell.\n\n2. The Vell ends in the Amber Sea."
ASKED = f"Question: {QUESTION.text}\n\nLet's think step by step."
EXTRACT = "Therefore, the answer (in as few words as possible) is"


def opened(**settings: Any) -> System:
    return zero_shot_chain_of_thought(QUESTION, {}, ZeroShotChainSettings(**settings))


def told(*lines: str, **settings: Any) -> Ran:
    return ran(partial(opened, **settings), lines)


def turns(done: Ran) -> list[list[tuple[str, str]]]:
    prompts = [each.prompt for each in done.actions if isinstance(each, Prompted)]
    return [[(turn.role, turn.text) for turn in prompt.turns] for prompt in prompts]


def test_the_model_thinks_and_is_then_asked_for_the_answer_of_its_chain() -> None:
    done = told(CHAIN, "the Amber Sea.")
    assert turns(done) == [[("user", ASKED)], [("user", ASKED), ("assistant", CHAIN), ("user", EXTRACT)]]
    assert [(each.max_tokens, each.until) for each in done.actions if isinstance(each, Prompted)] == [
        (256, "end"),
        (32, "line"),
    ]
    assert done.answer.text == "the Amber Sea"
    assert done.answer.sentences == ("1. Brenn lies on the Vell.", "2. The Vell ends in the Amber Sea.")


@each_case("chain", ["", " \n"])
def test_without_a_chain_the_question_s_own_turn_goes_on(chain: str) -> None:
    done = told(chain, "It is unknown")
    assert turns(done)[1] == [("user", f"{ASKED}\n\n{EXTRACT}")]
    assert (done.answer.text, done.answer.sentences) == ("It is unknown", ())


def test_an_empty_extraction_is_no_answer() -> None:
    assert told(CHAIN, "").answer.text == ""


@each_case(("after", "sentences", "limit"), [(0, 0, "tokens"), (1, 2, "tokens")])
def test_a_budget_leaves_the_extraction(after: int, sentences: int, limit: str) -> None:
    world = MadeUp(ToldModel([CHAIN, "yes"] if after else ["yes"]))
    steps, answer = driven(opened, after, world)  # type: ignore[arg-type]
    assert (len(steps), answer.text, len(answer.sentences), answer.limit) == (after + 1, "yes", sentences, limit)


@given(st.text(), st.text())
def test_any_texts_end_after_two_calls(chain: str, said: str) -> None:
    done = told(chain, said)
    assert len(done.actions) == 2
    assert done.answer.text in said
