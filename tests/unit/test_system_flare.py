"""FLARE-direct, held against section 3.2 of its paper and the rules of its authors' code."""

import math
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm, Shots, whole_prompts
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.core.results import Generated
from cotrail.core.system import System
from cotrail.systems.written_queries import FLARE, SPECS, FlareSettings, flare, flare_bounds, unsure_query
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import Line, Ran, ToldModel, ran
from tests.unit.test_budgets import driven
from tests.unit.test_systems import wrote

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
FOUND = {QUESTION.text: (BRENN,), "Brenn lies on the Oder.": (VELL,)}
WORDS = {"answer": "{examples}\n\n{paragraphs}Question: {question}\nAnswer:", "examples": "Examples."}
SHOTS: Shots = {AnswerForm.PROMPT: whole_prompts(WORDS)}
ASKED = f"Question: {QUESTION.text}\nAnswer:"
UNSURE, SURE = 0.5, 0.99


def opened(question: Question = QUESTION, **settings: Any) -> System:
    return flare(question, SHOTS, FlareSettings(**settings))


def told(*lines: Line, **settings: Any) -> Ran:
    return ran(partial(opened, **settings), lines, FOUND)


def searched(done: Ran) -> list[str]:
    return [action.query for action in done.actions if isinstance(action, Retrieve)]


def draft(*tokens: tuple[str, float]) -> Generated:
    text = "".join(text for text, _ in tokens)
    scored = tuple((text, math.log(probability)) for text, probability in tokens)
    return replace(wrote(text.strip()), raw=text, tokens=scored)


def test_an_unsure_sentence_is_searched_for_and_written_again_with_what_that_finds_alone() -> None:
    done = told(
        ("Brenn lies on the Oder.", UNSURE), "Brenn lies on the Vell.", ("So the answer is the Amber Sea.", SURE)
    )
    assert done.prompts == [
        f"Examples.\n\n[1] Brenn\n{BRENN.text}\n\n{ASKED}",
        f"Examples.\n\n[1] Vell\n{VELL.text}\n\n{ASKED}",
        f"Examples.\n\n[1] Vell\n{VELL.text}\n\n{ASKED} Brenn lies on the Vell.",
    ]
    assert searched(done) == [QUESTION.text, "Brenn lies on the Oder."]
    assert all(isinstance(each, Reason) and each.scored and each.max_tokens <= 64 for each in done.asked(Reason))
    assert (done.answer.text, done.answer.limit) == ("the Amber Sea", "")
    assert done.answer.sentences == ("Brenn lies on the Vell.", "So the answer is the Amber Sea.")
    assert done.answer.paragraphs == (BRENN, VELL)


def test_the_released_code_writes_a_sure_sentence_again_too_without_a_search() -> None:
    assert SPECS[0].released == {"rewrite": True}
    done = told("Brenn is.", "Brenn is.", "", "", rewrite=True)
    assert searched(done) == [QUESTION.text]
    assert done.prompts[0] == done.prompts[1]
    assert done.answer.sentences == ("Brenn is.",)


@each_case(
    ("tokens", "query"),
    [
        ((("Ada", 0.81), (" left", 0.9)), ""),
        ((("Ada", 0.8), (" left", 0.9)), "Ada left"),
        ((("Ada", 0.9), (" left", 0.4), (" Brenn", 0.41)), "Ada  Brenn"),
        ((("Ada", 0.1), (" left", 0.4)), ""),
    ],
)
def test_a_token_as_likely_as_theta_is_unsure_and_one_as_likely_as_beta_is_masked(
    tokens: tuple[tuple[str, float], ...], query: str
) -> None:
    assert unsure_query(draft(*tokens), FlareSettings()) == query


def test_thresholds_of_0_and_1_search_never_and_always_and_mask_nothing() -> None:
    written = draft(("Ada", 0.01), (" left", 0.999))
    assert unsure_query(written, FlareSettings(theta=0.0)) == ""
    assert unsure_query(written, FlareSettings(beta=0.0)) == "Ada left"
    assert unsure_query(draft(("Ada", 1.0)), FlareSettings(theta=1.0)) == "Ada"


def test_only_tokens_of_the_sentence_count() -> None:
    written = draft(("Ada", 0.99), (" left.", 0.99), (" Then", 0.1))
    assert unsure_query(replace(written, text="Ada left."), FlareSettings()) == ""


def test_what_is_masked_whole_is_not_searched_for_and_the_sentence_stays() -> None:
    done = told(("Brenn lies on the Oder.", 0.3), "")
    assert searched(done) == [QUESTION.text]
    assert done.answer.sentences == ("Brenn lies on the Oder.",)
    assert (done.answer.text, done.answer.limit) == ("", "")


def test_the_text_ends_at_its_most_tokens() -> None:
    done = told("One two three.", "Four five.", max_tokens=5, max_sentence_tokens=4)
    assert [each.max_tokens for each in done.actions if isinstance(each, Reason)] == [4, 2]
    assert (done.answer.text, done.answer.limit) == ("", "tokens")


def test_a_long_answer_is_the_whole_text_whatever_it_states() -> None:
    done = told("The answer is long.", "It has two sentences.", "", answers="whole")
    assert done.answer.text == "The answer is long. It has two sentences."


def test_a_pinned_passage_stands_before_what_is_found() -> None:
    question = replace(QUESTION, pinned=GoldParagraph(title="Pin", text="Pinned."))
    done = ran(partial(opened, question), [""], FOUND)
    assert done.prompts[0].startswith("Examples.\n\n[1] Pin\nPinned.\n\n[2] Brenn\n")


def test_own_words_are_eight_solved_questions() -> None:
    done = ran(lambda: flare(QUESTION, {}, FlareSettings()), [""], FOUND)
    assert f"\n\n{FLARE['examples']}\n\n[1] Brenn\n" in done.prompts[0]
    assert FLARE["examples"].count("So the answer is") == 8


@each_case("after", range(5))
def test_a_budget_ends_it_with_the_sentences_so_far(after: int) -> None:
    asked, answer = driven(opened, after, MadeUp(ToldModel([("Ada left.", UNSURE)] * 4), FOUND))  # type: ignore[arg-type]
    assert len(asked) == after
    assert answer.limit == "tokens"
    assert answer.sentences == ("Ada left.",) * (after >= 4)


@given(st.lists(st.tuples(st.text(max_size=40), st.floats(0.01, 1.0)), min_size=1, max_size=8), st.integers(1, 12))
def test_any_texts_end_within_the_limits(lines: list[tuple[str, float]], tokens: int) -> None:
    settings = FlareSettings(max_tokens=tokens)
    world = MadeUp(ToldModel([*lines * 2 * tokens, ""]), FOUND)
    asked, answer = driven(lambda: flare(QUESTION, {}, settings), None, world)  # type: ignore[arg-type]
    bounds = {each.kind: each.times for each in flare_bounds(QUESTION, settings)}
    assert sum(isinstance(each, Reason) for each in asked) <= bounds["reason"]
    assert answer.text == "" or answer.text in answer.sentences[-1]
