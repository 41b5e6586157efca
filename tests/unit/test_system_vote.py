"""Self-consistency of any system."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotrail.core.actions.generate import Prompted, Read
from cotrail.core.demonstrations import AnswerForm
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import Answer, System
from cotrail.errors import InputError, UnknownNameError
from cotrail.services.runs.configuring import configure
from cotrail.services.runs.requests import make_request
from cotrail.systems.parts.majority import Votes
from cotrail.systems.registry import SYSTEMS, find_system
from cotrail.systems.vote import VoteSettings, vote
from tests.cases import each_case
from tests.replay.driving import MadeUp
from tests.told import Ran, ToldModel, ran
from tests.unit.test_budgets import driven

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
SPEC = find_system("vote")


def opened(**changes: Any) -> System:
    return vote(SYSTEMS, QUESTION, {}, VoteSettings(**{"samples": 3} | changes))


def told(*lines: str, **changes: Any) -> Ran:
    return ran(partial(opened, **changes), lines, {QUESTION.text: (BRENN,)})


def configured(**settings: Any) -> Any:
    values = {"system": "vote", "dataset": "jsonl", "questions": "q", "settings": settings}
    return configure(SPEC, make_request(values))


def test_samples_run_side_by_side_and_the_answer_that_most_have_wins() -> None:
    done = told("One chain.", "Another chain.", "A third.", "the Black Sea", "Amber Sea", "the amber sea.")
    drawn = [(each.sample, each.temperature) for each in done.actions if isinstance(each, Prompted)]
    assert drawn == [(0, 0.7), (1, 0.7), (2, 0.7)] * 2
    assert done.answer.text == "Amber Sea"
    assert done.answer.sentences == ("Another chain.",)
    assert isinstance(done.answer.details, Votes)
    assert done.answer.details.answers == ("the Black Sea", "Amber Sea", "the amber sea")
    assert done.answer.details.chosen == 1


def test_of_answers_with_equal_votes_the_first_wins() -> None:
    assert told("longest", "short", "", of="direct").answer.text == "longest"


def test_without_answers_there_is_none() -> None:
    done = told("", "", "", of="direct")
    assert done.answer == Answer(text="", details=Votes(answers=("", "", "")))


def test_settings_are_the_inner_system_s() -> None:
    done = told(
        "yes", "no", "no", of="direct-retrieval", settings={"max_tokens": 7, "search": {"count": 1}}, temperature=0.2
    )
    assert [(each.max_tokens, each.temperature) for each in done.actions if isinstance(each, Read)] == [(7, 0.2)] * 3
    assert (done.answer.text, done.answer.paragraphs) == ("no", (BRENN,))


def test_a_temperature_of_the_inner_system_s_own_stays() -> None:
    done = told("yes", "no", "no", of="direct", settings={"temperature": 0.0})
    assert [each.temperature for each in done.actions if isinstance(each, Read)] == [0.0] * 3


def test_a_run_records_the_version_and_every_setting() -> None:
    run = configured(of="direct", settings={"max_tokens": 7})
    assert run.settings["of"] == "direct@1"
    assert run.settings["settings"] == {"max_tokens": 7, "temperature": None}
    assert configured(**run.settings).settings == run.settings


@each_case(
    ("of", "needs"),
    [
        ("one-step", {"corpus": True, "samples": True, "forms": {AnswerForm.DIRECT}}),
        ("direct", {"corpus": False, "samples": True, "capabilities": {"turns"}}),
        ("one-step@1", {"corpus": True, "samples": True}),
    ],
)
def test_it_needs_what_the_inner_system_needs_and_samples(of: str, needs: dict[str, Any]) -> None:
    found = SPEC.needs(VoteSettings(of=of))
    assert {name: getattr(found, name) for name in needs} == needs


@each_case(
    ("changes", "message"),
    [
        ({"of": "vote"}, "can't be a vote of itself"),
        ({"of": "direct@x"}, "name a system, such as"),
        ({"of": "direct", "settings": {"max_token": 1}}, r"settings of vote, for direct: .*max_token.*; correct it"),
        ({"of": "direct", "settings": {"max_tokens": 0}}, "settings of vote, for direct: .*max_tokens"),
        ({"samples": 0}, "settings of vote: .*samples"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        configured(**changes)


def test_an_unknown_system_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(UnknownNameError, match="direct"):
        configured(of="dirct")


def test_there_is_no_bound_where_the_inner_system_has_none() -> None:
    assert SPEC.step_bounds(QUESTION, VoteSettings(of="rethinking")) is None
    bounds = SPEC.step_bounds(QUESTION, VoteSettings(of="direct-retrieval", samples=4))
    assert bounds is not None
    assert [(each.kind, each.times, each.in_turn) for each in bounds] == [("retrieve", 4, 1), ("read", 4, 1)]


def test_a_budget_leaves_the_answers_of_the_samples_that_ended() -> None:
    # The second sample of these has its answer by a second call, as the others don't.
    lines = ["The answer is yes.", "Hm.", "The answer is no.", "no"]
    solved = partial(opened, of="plan-and-solve", settings={"retrieve": False})
    steps, answer = driven(solved, 3, MadeUp(ToldModel(lines)))  # type: ignore[arg-type]
    assert (len(steps), answer.text, answer.limit) == (3, "yes", "tokens")
    steps, answer = driven(solved, None, MadeUp(ToldModel(lines)))  # type: ignore[arg-type]
    assert (len(steps), answer.text, answer.limit) == (4, "no", "")


@settings(max_examples=40)
@given(st.lists(st.text(), min_size=3, max_size=3))
def test_any_texts_are_voted_on(lines: list[str]) -> None:
    done = told(*lines, of="direct")
    assert len(done.actions) == 3
    assert any(done.answer.text in each for each in lines)
