"""Parts side by side do what each does alone."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.history import Failed, Finished
from cotrail.core.results import Failure, Result, Retrieved
from cotrail.core.system import Action, Answer, Part, StepFailed, System, Together, expect
from cotrail.systems.parts.steps import in_parallel
from tests.replay.driving import FAILURE, found, live, replayed, search

Shape = tuple[int, ...]
"""How many searches a part asks for in each of its rounds; 0 stands for one that isn't in a `Together`."""

SHAPES = st.lists(st.lists(st.integers(0, 3), max_size=4).map(tuple), max_size=4)


def world(action: Action) -> Result | Failure:
    query = getattr(action, "query", "")
    return FAILURE if "bad" in query else found(query)


def part(name: str, shape: Shape) -> Part[list[str]]:
    """Searches in these rounds; returns what it was sent, and how its failed actions ended."""
    told = []
    for number, count in enumerate(shape):
        asked = tuple(search(f"{name} {number} {each}") for each in range(count or 1))
        try:
            reply = yield (Together(asked) if count else asked[0])
        except StepFailed as failed:
            told.append(f"{failed.failure.type} of {len(failed.outcomes)}")
        else:
            replies = reply if isinstance(reply, tuple) else (reply,)
            told += [expect(each, Retrieved).hits[0].paragraph.title for each in replies]
    return told


def system(inner: Part[object]) -> System:
    return Answer(text=repr((yield from inner)))


def parts(shapes: list[Shape]) -> Iterator[Part[list[str]]]:
    return (part(f"{'bad' if index % 3 == 2 else 'part'} {index}", shape) for index, shape in enumerate(shapes))


def alone(shapes: list[Shape]) -> Part[tuple[list[str], ...]]:
    told = []
    for each in parts(shapes):
        told.append((yield from each))  # noqa: PERF401 - a comprehension can't yield
    return tuple(told)


@given(SHAPES)
def test_parts_in_parallel_return_what_each_returns_alone(shapes: list[Shape]) -> None:
    _, side_by_side = live(system(in_parallel(parts(shapes))), world)
    _, one_by_one = live(system(alone(shapes)), world)
    assert side_by_side == one_by_one


@given(SHAPES)
def test_parts_in_parallel_replay(shapes: list[Shape]) -> None:
    straight = live(system(in_parallel(parts(shapes))), world)
    assert replayed(lambda: system(in_parallel(parts(shapes))), world) == straight


@given(SHAPES)
def test_each_round_is_one_together_of_all_unfinished_parts(shapes: list[Shape]) -> None:
    running = system(in_parallel(parts(shapes)))
    sizes, reply = [], None
    while True:
        try:
            yielded = running.send(reply) if reply else next(running)
        except StopIteration:
            break
        except StepFailed as failed:
            pytest.fail(str(failed))
        assert isinstance(yielded, Together)
        sizes.append(len(yielded.actions))
        reply = tuple(found("x") for _ in yielded.actions)
    rounds = max(map(len, shapes), default=0)
    assert sizes == [sum(max(shape[number], 1) for shape in shapes if number < len(shape)) for number in range(rounds)]


def test_a_failure_that_its_part_does_not_catch_ends_all_and_closes_them() -> None:
    closed = []

    def careful() -> Part[None]:
        try:
            yield search("good")
            yield search("better")
        finally:
            closed.append("careful")

    def careless() -> Part[None]:
        yield search("bad")

    trace, ended = live(system(in_parallel([careful(), careless()])), world)
    assert isinstance(ended, Failed)
    assert ended.failure == FAILURE
    assert len(trace) == 2
    assert closed == ["careful"]


def test_parts_that_return_at_once_yield_nothing() -> None:
    trace, ended = live(system(in_parallel(parts([(), ()]))), world)
    assert trace == []
    assert ended == Finished(Answer(text="([], [])"))
