"""Verify-and-Edit, held against section 3 of its paper and the rules of its authors' code."""

from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.actions.embed import Embed
from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm, Shots, whole_prompts
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import System
from cotrail.systems.parts.majority import Votes
from cotrail.systems.verify_and_edit import OWN, SPEC, VerifyAndEditSettings, rationale_of, step_bounds, verify_and_edit
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import Line, Ran, ToldModel, ran
from tests.unit.test_budgets import driven

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
RIVER, SEA = "Which river flows through Brenn?", "Where does the Vell end?"
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell. It is old.")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
FOUND = {RIVER: (BRENN,), SEA: (VELL,), "Nothing?": ()}
WORDS = {
    "answer": "Q: {question}\nA:",
    "verify": "{question} {sentence} Question:",
    "read": "Context: {context}\nQ: {question}\nA:",
}
SHOTS: Shots = {AnswerForm.PROMPT: whole_prompts(WORDS)}
FIRST = f"Q: {QUESTION.text}\nA:"
BLACK = " First, the river is the Oder. Second, the Oder ends in the Black Sea. The answer is Black Sea.\n\nQ: x"
WHITE = " First, it is the Don. The answer is the White Sea."


def opened(**settings: Any) -> System:
    return verify_and_edit(QUESTION, SHOTS, VerifyAndEditSettings(**settings))


def told(*lines: Line, **settings: Any) -> Ran:
    return ran(partial(opened, **settings), lines, FOUND)


def test_chains_that_agree_are_not_edited() -> None:
    done = told(BLACK, WHITE, "", BLACK, BLACK)
    assert done.prompts == [FIRST] * 5
    chains = [each for each in done.actions if isinstance(each, Reason)]
    assert [(each.sample, each.temperature, each.scored) for each in chains] == [(n, 0.7, True) for n in range(5)]
    assert (done.answer.text, done.answer.limit) == ("Black Sea", "")
    assert done.answer.sentences == ("First, the river is the Oder.", "Second, the Oder ends in the Black Sea.")


def test_sentences_of_chains_that_disagree_are_verified_and_edited() -> None:
    done = told(
        BLACK,
        WHITE,
        "No.",
        BLACK,
        "",
        RIVER,
        SEA,
        "The river is the Vell.",
        "It ends in the\nAmber Sea.",
        " Amber Sea.",
    )
    assert done.prompts[5:7] == [
        f"{QUESTION.text} First, the river is the Oder. Question:",
        f"{QUESTION.text} Second, the Oder ends in the Black Sea. Question:",
    ]
    river, sea = done.prompts[7:9]
    assert river in [f"Context: {both}\nQ: {RIVER}\nA:" for both in (BRENN.text, "It is old. Brenn lies on the Vell.")]
    assert sea == f"Context: {VELL.text}\nQ: {SEA}\nA:"
    assert done.prompts[9] == f"{FIRST} The river is the Vell. It ends in the Amber Sea. The answer is"
    assert [each.query for each in done.actions if isinstance(each, Retrieve)] == [RIVER, SEA]
    assert (done.answer.text, done.answer.limit) == ("Amber Sea", "")
    assert done.answer.sentences == ("The river is the Vell.", "It ends in the Amber Sea.")
    assert done.answer.paragraphs == (BRENN, VELL)
    assert isinstance(done.answer.details, Votes)
    assert done.answer.details.winner == "Black Sea"


@each_case(("chains", "edited"), [([BLACK, BLACK, WHITE, ""], False), ([BLACK, BLACK, WHITE, "", ""], True)])
def test_half_of_the_votes_are_enough(chains: list[str], edited: bool) -> None:  # noqa: FBT001 - a case
    more = ["Nothing?", "Nothing?", "x"] if edited else []
    assert len(told(*chains, *more, chains=len(chains)).prompts) == len(chains) + len(more)


def test_the_released_code_edits_every_chain() -> None:
    released = SPEC.rule_settings("released", instructed=False)
    assert released == {"temperature": 0.0, "edits": "always"}
    done = told(*[WHITE] * 5, "Nothing?", "the White Sea", **released)
    assert {each.temperature for each in done.actions if isinstance(each, Reason)} == {0.0}
    assert done.answer.text == "the White Sea"


def test_the_likeliest_chain_with_the_answer_that_won_is_edited() -> None:
    likely = " Then the Don. The answer is White Sea."
    done = told(
        ("Other. The answer is x.", 0.99), (WHITE, 0.5), (likely, 0.9), "Nothing?", "y", chains=3, edits="always"
    )
    assert done.prompts[3] == f"{QUESTION.text} Then the Don. Question:"


@each_case("query", ["Nothing?", "", "  "])
def test_a_sentence_for_which_nothing_is_found_stays(query: str) -> None:
    done = told(WHITE, query, "the White Sea", chains=1, edits="always")
    assert not done.asked(Embed)
    assert done.answer.sentences == ("First, it is the Don.",)


def test_a_sentence_of_which_nothing_is_written_stays() -> None:
    done = told(WHITE, SEA, " \n", "the White Sea", chains=1, edits="always")
    assert done.answer.sentences == ("First, it is the Don.",)


def test_only_the_nearest_sentences_are_shown() -> None:
    done = told(WHITE, RIVER, "x", "y", chains=1, edits="always", evidence=1, sentence_words=2)
    assert done.prompts[2] in [f"Context: {each}\nQ: {RIVER}\nA:" for each in ("Brenn lies", "It is")]


@each_case(
    ("chain", "rationale"),
    [
        ("A. The answer is x.", "A. "),
        ("The answer is x. The answer is y.", "The answer is x. "),
        ("A.", "A."),
        ("", ""),
    ],
)
def test_a_rationale_ends_before_the_last_answer(chain: str, rationale: str) -> None:
    assert rationale_of(chain) == rationale


@each_case("chains", [[""], [" \n"], ["The answer is"]])
def test_without_a_rationale_the_question_is_answered_at_once(chains: list[str]) -> None:
    done = told(*chains, " Ada.\nMore", chains=1)
    assert done.prompts[1] == f"{FIRST} The answer is"
    assert done.answer.text == "Ada"


def test_own_words_have_six_chains_and_are_read_as_they_say() -> None:
    assert OWN["answer"].count("The answer is") == 6
    done = ran(lambda: verify_and_edit(QUESTION, {}, VerifyAndEditSettings(chains=1)), [WHITE], FOUND)
    assert done.answer.text == "the White Sea"


@each_case(("after", "answer"), [(0, ""), (2, "Black Sea"), (4, "Black Sea"), (6, "Black Sea")])
def test_a_budget_leaves_the_answer_that_won(after: int, answer: str) -> None:
    lines = [BLACK, WHITE, RIVER, SEA]
    world = MadeUp(ToldModel(lines), FOUND)
    asked, ended = driven(lambda: opened(chains=2, edits="always"), after, world)  # type: ignore[arg-type]
    assert (len(asked), ended.text, ended.limit) == (after, answer, "tokens")


@given(st.lists(st.one_of(st.text(max_size=60), st.sampled_from([BLACK, WHITE, RIVER])), min_size=1, max_size=6))
def test_any_texts_end_within_the_limits(lines: list[str]) -> None:
    settings = VerifyAndEditSettings(chains=2)
    world = MadeUp(ToldModel(lines * 200), FOUND)
    asked, answer = driven(lambda: verify_and_edit(QUESTION, SHOTS, settings), None, world)  # type: ignore[arg-type]
    for kind, name in ((Reason, "reason"), (Retrieve, "retrieve"), (Embed, "embed")):
        bound = sum(each.times for each in step_bounds(QUESTION, settings) if each.kind == name)
        assert sum(isinstance(each, kind) for each in asked) <= bound
    written = " ".join(" ".join(lines).split())
    assert " ".join(answer.text.split()) in written
