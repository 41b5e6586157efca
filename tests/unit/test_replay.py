from collections.abc import Callable

import pytest
from msgspec.structs import replace

from cotrail.core.actions.generate import Reason
from cotrail.core.actions.registry import fingerprint, kind_of
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import Demonstrations
from cotrail.core.history import Failed, Finished, Next, Recorded
from cotrail.core.replay import SystemBrokenError, advance
from cotrail.core.results import Failure, Result, Retrieved
from cotrail.core.system import Action, Answer, StepFailed, System, Together
from cotrail.errors import BlockedError, ReplayMismatchError, StepError
from cotrail.systems.parts.prompting import few_shot_prompt
from tests.cases import each_case
from tests.replay.driving import BINDING, FAILURE, found, record, search


def think(question: str) -> Reason:
    return Reason(prompt=few_shot_prompt(demonstrations=Demonstrations(), question=question), max_tokens=5)


def titles(reply: Result | tuple[Result, ...]) -> str:
    assert isinstance(reply, Retrieved)
    return "+".join(hit.paragraph.title for hit in reply.hits)


def named(action: Action) -> str:
    return f"{kind_of(action).name} {fingerprint(action, BINDING)[:12]}"


def queries(outcome: Next | Finished | Failed) -> list[tuple[int, str]]:
    assert isinstance(outcome, Next)
    assert all(step.fingerprint == fingerprint(step.action, BINDING) for step in outcome.steps)
    return [(step.sequence, step.action.query) for step in outcome.steps if isinstance(step.action, Retrieve)]


def two_searches() -> System:
    first = yield search("a")
    second = yield search(titles(first))
    return Answer(text=titles(second))


def three_together() -> System:
    replies = yield Together((search("a"), search("b"), search("c")))
    assert isinstance(replies, tuple)
    return Answer(text=" ".join(map(titles, replies)))


def at_once() -> System:
    return Answer(text="known")
    yield


# What comes next


def test_without_a_record_the_first_action_is_next() -> None:
    assert queries(advance(two_searches, (), BINDING)) == [(0, "a")]


def test_a_recorded_result_leads_to_the_action_behind_it_and_the_last_one_to_the_answer() -> None:
    history = [record(search("a"), found("x", "y"))]
    assert queries(advance(two_searches, history, BINDING)) == [(1, "x+y")]
    history.append(record(search("x+y"), found("z")))
    assert advance(two_searches, history, BINDING) == Finished(Answer(text="z"))


def test_a_pending_step_is_waited_for() -> None:
    assert advance(two_searches, [record(search("a"))], BINDING) == Next(())


def test_a_system_may_answer_without_any_step() -> None:
    assert advance(at_once, (), BINDING) == Finished(Answer(text="known"))


def test_actions_together_are_numbered_in_order_and_answered_in_that_order() -> None:
    assert queries(advance(three_together, (), BINDING)) == [(0, "a"), (1, "b"), (2, "c")]
    history = [record(search(query), found(query.upper())) for query in "abc"]
    assert advance(three_together, history, BINDING) == Finished(Answer(text="A B C"))


def test_of_actions_together_those_not_recorded_yet_are_next() -> None:
    assert queries(advance(three_together, [record(search("a"), found("A"))], BINDING)) == [(1, "b"), (2, "c")]


@each_case("pending", [{0}, {1}, {2}, {0, 2}, {0, 1, 2}])
def test_actions_together_wait_for_the_last_of_them(pending: set[int]) -> None:
    history = [record(search(q), None if n in pending else found(q)) for n, q in enumerate("abc")]
    assert advance(three_together, history, BINDING) == Next(())


def test_actions_together_wait_for_the_others_where_one_has_failed() -> None:
    history = [record(search("a"), FAILURE), record(search("b")), record(search("c"), found("C"))]
    assert advance(three_together, history, BINDING) == Next(())


def test_one_action_together_is_answered_with_a_tuple_of_one() -> None:
    def system() -> System:
        replies = yield Together((search("a"),))
        assert isinstance(replies, tuple)
        return Answer(text=str(len(replies)))

    assert advance(system, [record(search("a"), found())], BINDING) == Finished(Answer(text="1"))


def test_systems_may_be_made_of_others() -> None:
    def outer() -> System:
        inner = yield from two_searches()
        last = yield search(inner.text)
        return Answer(text=titles(last))

    history = [record(search("a"), found("x")), record(search("x"), found("y"))]
    assert queries(advance(outer, history, BINDING)) == [(2, "y")]
    history.append(record(search("y"), found("z")))
    assert advance(outer, history, BINDING) == Finished(Answer(text="z"))


# Steps that failed


def test_a_failure_that_nobody_catches_ends_the_question() -> None:
    assert advance(two_searches, [record(search("a"), FAILURE)], BINDING) == Failed(FAILURE)


def test_of_several_failures_together_the_first_in_order_counts() -> None:
    other = Failure(type="PromptTooLongError", message="far")
    history = [record(search("a"), found("A")), record(search("b"), other), record(search("c"), FAILURE)]
    assert advance(three_together, history, BINDING) == Failed(other)


def test_a_system_that_catches_a_failure_of_several_together_sees_what_became_of_each() -> None:
    seen: list[Result | Failure] = []

    def system() -> System:
        try:
            yield Together((search("a"), search("b"), search("c")))
        except StepFailed as failed:
            seen.extend(failed.outcomes)
        return Answer(text="some")

    history = [record(search("a"), found("A")), record(search("b"), FAILURE), record(search("c"), found("C"))]
    assert advance(system, history, BINDING) == Finished(Answer(text="some"))
    assert seen == [found("A"), FAILURE, found("C")]


def test_a_failure_that_a_system_throws_on_ends_the_question() -> None:
    def system() -> System:
        try:
            yield Together((search("a"), search("b")))
        except StepFailed as failed:
            raise StepFailed(failed.outcomes[1]) from None  # type: ignore[arg-type]
        return Answer(text="none")

    other = Failure(type="PromptTooLongError", message="far")
    history = [record(search("a"), FAILURE), record(search("b"), other)]
    assert advance(system, history, BINDING) == Failed(other)


def test_the_failure_of_a_single_action_is_its_only_outcome() -> None:
    assert StepFailed(FAILURE).outcomes == (FAILURE,)


def catching() -> System:
    try:
        reply = titles((yield search("a")))
    except StepFailed as failed:
        reply = failed.failure.type
    yield search(reply)
    return Answer(text=reply)


def test_a_failure_that_is_caught_is_thrown_again_at_every_replay() -> None:
    history = [record(search("a"), FAILURE)]
    assert queries(advance(catching, history, BINDING)) == [(1, "StepError")]
    history.append(record(search("StepError"), found()))
    assert advance(catching, history, BINDING) == Finished(Answer(text="StepError"))


def test_a_failure_is_caught_through_nested_systems_too() -> None:
    def outer() -> System:
        try:
            return (yield from two_searches())
        except StepFailed as failed:
            return Answer(text=str(failed))

    answer = Answer(text="StepError: it can't be done")
    assert advance(outer, [record(search("a"), FAILURE)], BINDING) == Finished(answer)


# The record and the code disagree


def unfinished_together() -> System:
    yield Together((search("a"), search("b")))
    yield search("d")
    return Answer(text="")


A, B, C = (record(search(query), found(query)) for query in "abc")
MISMATCHES: dict[str, tuple[Callable[[], System], list[Recorded], int, str, str]] = {
    "another kind": (
        two_searches, [record(think("a"))], 0, named(think("a")), f"another kind, {named(search('a'))}",
    ),
    "another input": (
        two_searches, [A, B], 1, named(search("b")), f"the same kind with another input, {named(search('a'))}",
    ),
    "an answer too early": (
        two_searches, [A, record(search("a"), found()), C], 2, named(search("c")), "no step: it is finished",
    ),
    "an answer before the first action": (at_once, [A], 0, named(search("a")), "no step: it is finished"),
    "a failure too early": (
        two_searches, [record(search("a"), FAILURE), B], 1, named(search("b")), "no step: it is failed (StepError)",
    ),
    "a record beyond a step that is not done": (
        two_searches, [record(search("a")), B], 1, named(search("b")), "no step: it waits for earlier ones",
    ),
    "a record beyond actions together of which one is not done": (
        unfinished_together, [A, record(search("b")), C], 2, named(search("c")), "no step: it waits for earlier ones",
    ),
    "fewer together than recorded": (
        unfinished_together, [A, B, C], 2, named(search("c")),
        f"the same kind with another input, {named(search('d'))}",
    ),
    "more together than recorded": (
        three_together, [A, B, record(search("d"), found())], 2, named(search("d")),
        f"the same kind with another input, {named(search('c'))}",
    ),
    "another order together": (
        unfinished_together, [B, A], 0, named(search("b")),
        f"the same kind with another input, {named(search('a'))}",
    ),
    "a result that can't be read": (
        two_searches, [A, record(search("a"), unreadable="no field `text`")], 1,
        "a result that can't be read (no field `text`)", named(search("a")),
    ),
}  # fmt: skip


@each_case("case", MISMATCHES)
def test_a_mismatch_says_where_and_what(case: str) -> None:
    system, history, sequence, recorded, yielded = MISMATCHES[case]
    with pytest.raises(ReplayMismatchError) as raised:
        advance(system, history, BINDING)
    assert (raised.value.sequence, raised.value.recorded, raised.value.yielded) == (sequence, recorded, yielded)
    assert str(raised.value) == (
        f"step {sequence} no longer agrees with the record: recorded {recorded}; the code now yields {yielded}. "
        "Put back the code or the settings that the run began with, or submit a new run; "
        "then continue with `cotrail resume RUN`."
    )
    assert isinstance(raised.value, BlockedError)


def test_another_binding_is_another_input() -> None:
    with pytest.raises(ReplayMismatchError, match="the same kind with another input"):
        advance(two_searches, [A], replace(BINDING, corpora={"sample": "sample@2"}))


def test_where_another_input_led_to_an_unreadable_result_the_input_is_named() -> None:
    with pytest.raises(ReplayMismatchError, match="another input"):
        advance(two_searches, [record(search("b"), unreadable="gone")], BINDING)


def test_no_except_in_a_system_hides_a_mismatch() -> None:
    def system() -> System:
        try:
            yield search("z")
        except Exception:  # noqa: BLE001 - that is the point
            yield search("a")
        return Answer(text="")

    with pytest.raises(ReplayMismatchError):
        advance(system, [A], BINDING)


def test_no_except_of_everything_hides_a_mismatch() -> None:
    def system() -> System:
        try:
            yield search("z")
        except BaseException:  # noqa: BLE001
            return Answer(text="hidden")
        return Answer(text="")

    with pytest.raises(ReplayMismatchError):
        advance(system, [A], BINDING)


def refuses_to_close() -> System:
    try:
        yield search("z")
    except BaseException:  # noqa: BLE001
        yield search("a")
    return Answer(text="")


def fails_to_close() -> System:
    try:
        yield search("z")
    finally:
        raise ValueError("in the finally")


@each_case("system", [refuses_to_close, fails_to_close])
def test_what_a_system_does_when_it_is_closed_hides_no_mismatch(system: Callable[[], System]) -> None:
    with pytest.raises(ReplayMismatchError):
        advance(system, [A], BINDING)


# The code is at fault


@each_case("system", [refuses_to_close, fails_to_close])
def test_a_system_that_can_t_be_closed_is_broken(system: Callable[[], System]) -> None:
    with pytest.raises(SystemBrokenError):
        advance(system, [], BINDING)


@each_case("error", [KeyError("shots"), RuntimeError("no"), StopIteration("early"), AssertionError()])
def test_an_error_in_a_system_s_code_is_told_from_a_failed_step(error: Exception) -> None:
    def system() -> System:
        yield search("a")
        raise error

    assert isinstance(advance(system, [], BINDING), Next)
    with pytest.raises(
        SystemBrokenError, match=r"^the system's code raised \w+ in \w+.py, line \d+: .*; fix it, then `cotrail resume"
    ):
        advance(system, [A], BINDING)


@each_case("error", [ValueError("at once"), StepError("not thrown by the driver")])
def test_an_error_before_the_first_action_is_the_system_s_too(error: Exception) -> None:
    def system() -> System:
        raise error
        yield

    with pytest.raises(SystemBrokenError, match=str(error)) as raised:
        advance(system, [], BINDING)
    assert raised.value.__cause__ is error
    assert isinstance(raised.value, BlockedError)


@each_case(
    "yielded", [None, "a", found(), [search("a")], Together(()), Together((Together((search("a"),)),))],  # type: ignore[arg-type]
)  # fmt: skip
def test_what_is_no_action_is_named_with_its_step(yielded: object) -> None:
    def system() -> System:
        yield search("a")
        yield yielded  # type: ignore[misc]
        return Answer(text="")

    with pytest.raises(SystemBrokenError, match="at step 1, which isn't an action"):
        advance(system, [A], BINDING)


@each_case("returned", [None, "text", found()])
def test_what_is_no_answer_is_named(returned: object) -> None:
    def system() -> System:
        yield search("a")
        return returned  # type: ignore[return-value]

    with pytest.raises(SystemBrokenError, match="where an Answer is due"):
        advance(system, [A], BINDING)


def test_an_action_that_can_t_be_written_down_is_the_system_s_fault() -> None:
    def system() -> System:
        yield search("half a pair: \ud800")
        return Answer(text="")

    with pytest.raises(SystemBrokenError):
        advance(system, [], BINDING)


# Every generator is closed


@each_case(
    ("history", "ending"),
    [
        ([], None),
        ([record(search("a"))], None),
        ([A], None),
        ([record(search("a"), FAILURE)], None),
        ([B], ReplayMismatchError),
        ([record(search("a"), unreadable="gone")], ReplayMismatchError),
        ([A, B], SystemBrokenError),
    ],
)
def test_the_finally_blocks_of_a_system_run_at_once(history: list[Recorded], ending: type[Exception] | None) -> None:
    closed: list[str] = []

    def system() -> System:
        try:
            yield search("a")
            yield search("b")
            raise ValueError
        finally:
            closed.append("closed")

    if ending is None:
        advance(system, history, BINDING)
    else:
        with pytest.raises(ending):
            advance(system, history, BINDING)
    assert closed == ["closed"]
