"""Several parts of a system in parallel."""

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from cotrail.core.results import Failure, Result
from cotrail.core.system import Action, Part, Reply, StepFailed, Together, expect_each

T = TypeVar("T")


def in_parallel(parts: Iterable[Part[T]]) -> Part[tuple[T, ...]]:
    """Run parts that don't depend on each other in lock step; returns what each of them returns, in their order.

    The next actions of all unfinished parts are yielded in one `Together`. A failure is thrown into the part whose
    action failed, with the outcomes of that part's own actions, and the other parts are sent their results. A failure
    that its part doesn't catch ends all of them.
    """
    lanes = tuple(_Lane(part) for part in parts)
    try:
        for lane in lanes:
            lane.start()
        while unfinished := [lane for lane in lanes if not lane.returned]:
            outcomes = yield from _outcomes(tuple(action for lane in unfinished for action in lane.actions))
            for lane in unfinished:
                own, outcomes = outcomes[: len(lane.actions)], outcomes[len(lane.actions) :]
                lane.resume(own)
    finally:
        for lane in lanes:
            lane.part.close()
    return tuple(each for lane in lanes for each in lane.returned)


def _outcomes(actions: tuple[Action, ...]) -> Part[tuple[Result | Failure, ...]]:
    try:
        return expect_each((yield Together(actions)), Result)
    except StepFailed as failed:
        return failed.outcomes


class _Lane(Generic[T]):
    """A part that runs beside others: the actions that it waits for or, once it has ended, what it returned."""

    def __init__(self, part: Part[T]) -> None:
        self.part = part
        self.returned: tuple[T, ...] = ()
        self._yielded: Action | Together = Together(())

    @property
    def actions(self) -> tuple[Action, ...]:
        return self._yielded.actions if isinstance(self._yielded, Together) else (self._yielded,)

    def start(self) -> None:
        self._take(None)

    def resume(self, outcomes: Sequence[Result | Failure]) -> None:
        failure = next((each for each in outcomes if isinstance(each, Failure)), None)
        if failure is not None:
            self._take(StepFailed(failure, tuple(outcomes)))
            return
        results = tuple(each for each in outcomes if isinstance(each, Result))
        self._take(results if isinstance(self._yielded, Together) else results[0])

    def _take(self, reply: Reply | StepFailed | None) -> None:
        try:
            if isinstance(reply, StepFailed):
                self._yielded = self.part.throw(reply)
            else:
                # What starts a generator is None, which the type of a part leaves out.
                self._yielded = next(self.part) if reply is None else self.part.send(reply)
        except StopIteration as stop:
            self.returned = (stop.value,)
