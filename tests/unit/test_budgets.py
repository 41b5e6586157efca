"""Budgets: where a question ends, by what was recorded; its system answers from what it has found."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.actions.generate import Read, Reason
from cotrail.core.actions.registry import kind_of
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.budgets import Budget, Budgets, Consumed, total
from cotrail.core.history import Finished, Halt, Next, Recorded, consumed_by
from cotrail.core.money import ModelPrice, Rates
from cotrail.core.replay import Replay, advance
from cotrail.core.results import Failure, Generated, Result
from cotrail.core.system import Action, Answer, System
from cotrail.systems.ircot import IRCoTSettings, OneStepSettings, ircot, one_step
from cotrail.systems.parts.reading import ReaderSettings
from cotrail.systems.rethinking.settings import RethinkingSettings
from cotrail.systems.rethinking.system import rethinking
from cotrail.systems.searchain.prompts import SearChainSettings
from cotrail.systems.searchain.system import searchain
from tests.cases import each_case
from tests.replay.driving import BINDING, found, search
from tests.replay.driving import record as recorded
from tests.unit.test_systems import QUESTION, SHOTS, wrote

CHAIN = """[Query 1]: Who built the bridge ?
[Answer 1]: Ada.
[Query 2]: Where did Ada live ?
[Answer 2]: Grayle.
[Final Content]: Ada [1] lived in Grayle [2]."""
PRICE = ModelPrice(
    rates=(Rates(input=Decimal(1), cached=Decimal(1), cache_written=Decimal(1), output=Decimal(10)),), source=""
)


def replied(action: Action) -> Result:
    if isinstance(action, Retrieve):
        return found("Ada", "Grayle")
    return wrote("Grayle" if isinstance(action, Read) else "Ada built a bridge.")


def chained(action: Action) -> Result:
    return wrote(CHAIN) if isinstance(action, Reason) else replied(action)


def driven(
    system: Callable[[], System], after: int | None, reply: Callable[[Action], Result] = replied
) -> tuple[list[Action], Answer]:
    """What a system asked for, and its answer, where a budget ends it after so many steps at the earliest."""
    asked: list[Action] = []
    history: list[Recorded] = []
    halt: Halt | None = None
    replay = Replay(system, BINDING)
    while True:
        following = replay.advance(history, halt)
        if isinstance(following, Next) and halt is None and after is not None and len(history) >= after:
            halt = Halt(after=len(history), limit="tokens")
            following = replay.advance(history, halt)
        # A process that begins again comes to the same, live and on replay.
        assert advance(system, history, BINDING, halt) == following
        if not isinstance(following, Next):
            assert isinstance(following, Finished)
            return asked, following.answer
        for step in following.steps:
            asked.append(step.action)
            history.append(recorded(step.action, reply(step.action)))


def ircot_of(**settings: Any) -> Callable[[], System]:
    return lambda: ircot(QUESTION, SHOTS, IRCoTSettings(max_sentences=3, **settings))


def kinds(asked: list[Action]) -> list[str]:
    return [kind_of(action).name for action in asked]


@each_case("after", range(1, 7))
def test_the_reader_is_asked_once_with_what_was_found(after: int) -> None:
    asked, answer = driven(ircot_of(), after)
    unlimited, _ = driven(ircot_of(), None)
    assert kinds(asked) == [*kinds(unlimited)[:after], "read"]
    assert (answer.text, answer.limit) == ("Grayle", "tokens")
    assert [each.title for each in answer.paragraphs] == ["Ada", "Grayle"]
    assert len(answer.sentences) == after // 2


def test_a_limit_that_is_reached_before_the_first_paragraph_leaves_the_question_alone() -> None:
    asked, answer = driven(lambda: one_step(QUESTION, SHOTS, OneStepSettings()), 1)
    assert kinds(asked) == ["retrieve", "read"]
    assert (answer.text, answer.limit, len(answer.paragraphs)) == ("Grayle", "tokens", 2)


def test_without_a_reader_the_chain_so_far_is_the_answer() -> None:
    asked, answer = driven(ircot_of(reading=ReaderSettings(reader="none")), 2)
    assert kinds(asked) == ["retrieve", "reason"]
    assert (answer.text, answer.limit) == ("Ada built a bridge.", "tokens")


def test_what_ends_before_its_limit_ends_as_it_would_without_one() -> None:
    unlimited = driven(ircot_of(), None)
    assert driven(ircot_of(), len(unlimited[0])) == unlimited
    assert unlimited[1].limit == "sentences"


@each_case("tracing", [True, False])
def test_search_in_the_chain_writes_its_final_content_from_the_path_so_far(tracing: bool) -> None:  # noqa: FBT001
    settings = SearChainSettings(reader="extractor", verify=False, tracing=tracing)
    asked, answer = driven(lambda: searchain(QUESTION, SHOTS, settings), 2, chained)
    assert kinds(asked) == ["reason", "retrieve", *(["reason"] if tracing else [])]
    assert (answer.text, answer.limit) == ("Ada lived in Grayle.", "tokens")


def test_a_limit_among_queries_that_are_looked_up_at_once_leaves_the_model_s_own_final_content() -> None:
    """No node was looked at yet, so that there is no path to write another from."""
    settings = SearChainSettings(reader="extractor", ahead=True)
    asked, answer = driven(lambda: searchain(QUESTION, SHOTS, settings), 2, chained)
    assert kinds(asked) == ["reason", "retrieve", "retrieve"]
    assert (answer.text, answer.limit) == ("Ada lived in Grayle.", "tokens")


def test_chains_whose_evidence_is_not_looked_up_vote() -> None:
    settings = RethinkingSettings(chains=3, retrieval_count=1)
    asked, answer = driven(lambda: rethinking(QUESTION, SHOTS, settings), 3)
    assert kinds(asked) == ["reason"] * 3
    assert answer.limit == "tokens"
    assert answer.details is not None


def test_a_system_that_knows_no_limits_ends_without_an_answer() -> None:
    def two_searches() -> System:
        yield search("a")
        yield search("b")
        return Answer(text="known")

    asked, answer = driven(two_searches, 1)
    assert (len(asked), answer) == (1, Answer(text="", limit="tokens"))


def test_a_step_counts_with_its_tokens_its_time_and_its_money() -> None:
    generated = replace(wrote("x"), prompt_tokens=100, generated_tokens=20)
    taken = Consumed(steps=1, tokens=120, seconds=Decimal("0.0125"), money=Decimal("0.0003"))
    assert consumed_by(generated, 12.5, PRICE) == taken
    unanswered = Failure(type="UnansweredError", message="", written=generated)
    assert consumed_by(unanswered, 12.5, PRICE) == taken
    assert consumed_by(found("Ada"), 12.5, None) == Consumed(steps=1, seconds=Decimal("0.0125"))


BUDGETS = st.builds(
    Budget,
    steps=st.none() | st.integers(1, 9),
    tokens=st.none() | st.integers(1, 900),
    money=st.none() | st.floats(0.000001, 0.01),
)
STEPS = st.lists(st.builds(lambda n: replace(wrote("x"), prompt_tokens=n, generated_tokens=n), st.integers(0, 300)))


@given(BUDGETS, STEPS)
def test_no_budget_is_exceeded_by_more_than_a_step(budget: Budget, steps: list[Generated]) -> None:
    taken: list[Consumed] = []
    for step in steps:
        if budget.reached(total(taken)):
            break
        taken.append(consumed_by(step, 1.0, PRICE))
    limit = budget.reached(total(taken))
    assert limit or len(taken) == len(steps)
    assert not budget.reached(total(taken[:-1]))


@pytest.mark.parametrize(
    ("budgets", "consumed", "largest", "under_way", "left"),
    [
        ({}, {"tokens": 100}, 100, 0, None),
        ({"question": {"tokens": 100}}, {"tokens": 100}, 100, 0, None),
        ({"run": {"tokens": 1000}}, {}, 0, 0, 1),  # nothing is known: the first begins alone
        ({"run": {"tokens": 1000}}, {"tokens": 300}, 0, 1, 0),
        ({"run": {"tokens": 1000}}, {"tokens": 300}, 300, 0, 2),
        ({"run": {"tokens": 1000}}, {"tokens": 300}, 300, 1, 1),
        ({"run": {"tokens": 1000}}, {"tokens": 300}, 300, 2, 0),
        ({"run": {"tokens": 1000}}, {"tokens": 900}, 300, 0, 1),  # something is under way until it is used up
        ({"run": {"tokens": 1000}}, {"tokens": 900}, 300, 1, 0),
        ({"run": {"tokens": 1000}, "question": {"tokens": 100}}, {}, 0, 3, 7),
        ({"run": {"tokens": 1000}, "question": {"tokens": 100}}, {"tokens": 50}, 25, 0, 38),
        ({"run": {"tokens": 1000, "steps": 9}}, {"tokens": 10, "steps": 1}, 10, 0, 1),
        ({"run": {"tokens": 1000, "money": 0.5}, "question": {"money": 0.1}}, {}, 0, 0, 1),
    ],
)
def test_what_questions_under_way_may_take_is_reserved_before_others_begin(
    budgets: Any, consumed: Any, largest: int, under_way: int, left: int | None
) -> None:
    read = msgspec.convert(budgets, Budgets)
    assert read.questions_left(Consumed(**consumed), Consumed(tokens=largest), under_way) == left


def test_a_run_that_is_served_in_batches_does_not_wait_for_a_first_question() -> None:
    budgets = msgspec.convert({"run": {"tokens": 1000, "steps": 20}, "question": {"steps": 2}}, Budgets)
    assert budgets.questions_left(Consumed(), Consumed(), 0, alone=False) == 10
    assert (
        msgspec.convert({"run": {"tokens": 1000}}, Budgets).questions_left(Consumed(), Consumed(), 0, alone=False)
        is None
    )


def test_a_run_s_limit_is_named_as_such() -> None:
    budgets = Budgets(question=Budget(tokens=100), run=Budget(money=1, steps=5))
    assert budgets.reached(Consumed(tokens=100), Consumed(steps=9)) == "tokens"
    assert budgets.reached(Consumed(), Consumed(steps=5)) == "run steps"
    assert budgets.reached(Consumed(), Consumed(money=Decimal("0.99"))) == ""


@each_case("given", [{"tokens": 0}, {"money": 0}, {"seconds": -1}, {"steps": 1.5}, {"dollars": 1}])
def test_a_budget_is_checked(given: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(given, Budget)


def test_budgets_are_shown_with_their_units() -> None:
    budgets = Budgets(question=Budget(steps=1, seconds=2.5), run=Budget(tokens=20_000, money=1))
    assert dict(budgets.named()) == {
        "budget of each question": "1 step, 2.5 seconds",
        "budget of the run": "20,000 tokens, 1 US dollar",
    }
    assert dict(Budgets().named()) == {}
