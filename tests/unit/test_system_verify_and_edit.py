"""Verify-and-Edit under transcripts written by hand."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.actions.embed import Embed
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.history import Finished
from cotrail.core.paragraphs import Paragraph
from cotrail.core.questions import Question
from cotrail.core.system import LimitReached
from cotrail.systems.registry import find_system
from cotrail.systems.verify_and_edit import VerifyAndEditSettings, verify_and_edit
from tests.replay.driving import MadeUp, live
from tests.told import Line, Ran, ToldModel, ran

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell. It is old.")
FOUND = {"On which river does Brenn lie?": (BRENN,)}
RIVER, BLACK = " Brenn lies on the Wend. It ends in the Black Sea. The answer is the Black Sea.", " The answer is x."


def told(*lines: Line, **settings: Any) -> Ran:
    return ran(partial(verify_and_edit, QUESTION, {}, VerifyAndEditSettings(**settings)), lines, FOUND)


def test_a_majority_is_believed_in_the_words_of_its_likeliest_chain() -> None:
    result = told((f" First.{RIVER}", 0.5), (RIVER, 0.9), (RIVER, 0.6), BLACK, "")
    assert (result.answer.text, result.asked(Retrieve)) == ("the Black Sea", [])
    assert result.answer.sentences == ("Brenn lies on the Wend.", "It ends in the Black Sea.")
    drawn = [each for each in result.actions if isinstance(each, Reason)]
    assert [each.sample for each in drawn] == [0, 1, 2, 3, 4]
    assert {each.temperature for each in drawn} == {0.7}


def test_sentences_are_replaced_by_what_is_found_for_a_question_about_them() -> None:
    result = told(
        *((RIVER, 0.9), (BLACK, 0.95), (RIVER, 0.8), " The answer is y.", ""),
        *("On which river does Brenn lie?", "Brenn lies on the Vell."),
        *("Where does it end?", "The Vell ends in the Amber Sea."),
        "the Amber Sea.",
        samples=5,
    )
    *_, last = result.prompts
    assert last.endswith("A: Brenn lies on the Vell. The Vell ends in the Amber Sea. The answer is")
    assert (result.answer.text, result.answer.paragraphs[0]) == ("the Amber Sea", BRENN)
    verify = result.prompts[5]
    assert verify.endswith(f"Overall question: {QUESTION.text}\nSentence: Brenn lies on the Wend.\nQuestion:")
    assert next(each.sentences for each in result.actions if isinstance(each, Embed)) == (
        "On which river does Brenn lie?",
        "Brenn lies on the Vell.",
        "It is old.",
    )
    assert result.prompts[6].endswith("Question: On which river does Brenn lie?\nAnswer:")


def test_without_an_answer_in_what_was_found_a_sentence_stays() -> None:
    result = told(RIVER, "On which river does Brenn lie?", "", "", "", "x", samples=1)
    assert result.answer.sentences == ("Brenn lies on the Wend.", "It ends in the Black Sea.")


def test_the_released_code_edits_every_chain_and_draws_at_0() -> None:
    settings = find_system("verify-and-edit").rule_settings("released", instructed=False)
    result = told(*[" A. The answer is a."] * 5, "Q?", "B.", "b", **settings)
    assert result.answer.text == "b"
    assert {each.temperature for each in result.actions if isinstance(each, Reason)} == {0.0}


@pytest.mark.parametrize("line", ["", " ", "The answer is", "The answer is .", "The answer is\n\nx"])
def test_chains_that_state_nothing_have_nothing_to_edit_and_the_reader_is_asked(line: str) -> None:
    result = told(*[line] * 5, "Amber Sea")
    assert result.prompts[-1].endswith("A: The answer is")
    assert (result.answer.text, result.answer.sentences, result.asked(Retrieve)) == ("Amber Sea", (), [])


def test_at_a_budgets_end_it_answers_from_the_chain() -> None:
    system = verify_and_edit(QUESTION, {}, VerifyAndEditSettings(samples=1))
    together: Any = next(system)
    model = MadeUp(ToldModel([RIVER]))
    system.send(tuple(model(each) for each in together.actions))  # type: ignore[misc]
    read = system.throw(LimitReached("tokens"))
    assert isinstance(read, Read)
    with pytest.raises(StopIteration) as ended:
        system.send(MadeUp(ToldModel(["the Black Sea."]))(read))  # type: ignore[arg-type]
    assert (ended.value.value.text, ended.value.value.limit) == ("the Black Sea", "tokens")


PIECES = st.sampled_from(["The answer is", " a.", " b", "\n\n", "\nQ:", "Sentence one.", " ", "Two?"])


@given(st.lists(st.lists(PIECES, max_size=6).map("".join), min_size=40, max_size=40))
def test_anything_ends(lines: list[str]) -> None:
    system = verify_and_edit(QUESTION, {}, VerifyAndEditSettings(samples=3, agreeing=2))
    _, end = live(system, MadeUp(ToldModel(lines), FOUND))
    assert isinstance(end, Finished)
