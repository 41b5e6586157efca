"""Several actions at once and several parts of a system in parallel, texts that may be empty, and second requests."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from cotrail.core.actions.generate import Reason
from cotrail.core.prompts import Piece, Prompt, user
from cotrail.core.results import Failure, Generated, Result
from cotrail.core.system import Action, LimitReached, Part, Reply, StepFailed, Together, expect, expect_each
from cotrail.systems.parts.rules import Limited

ResultT = TypeVar("ResultT", bound=Result)

EMPTY_GENERATION = "EmptyGenerationError"
"""The failure in records from before an empty generation was a result like any other; they replay as the empty text."""


class Drawn(Protocol):
    """Settings of a system by which its texts are drawn."""

    @property
    def max_tokens(self) -> int: ...

    @property
    def temperature(self) -> float | None: ...


def until_stop(prompt: Prompt, stop: tuple[str, ...], settings: Drawn) -> Reason:
    """The step in which the model continues with a prompt up to one of these strings, as the settings have it."""
    tokens, temperature = settings.max_tokens, settings.temperature
    return Reason(prompt=prompt, max_tokens=tokens, until="stop", stop=stop, temperature=temperature)


def last_step(action: Action) -> Part[Reply]:
    """The reply to the step with which a system ends, also where a limit ends it there: what that asks for is this."""
    with Limited():
        return (yield action)
    return (yield action)


def last_text(action: Action) -> Part[str]:
    """The text of the generation with which a system ends; see `last_step`."""
    return expect((yield from last_step(action)), Generated).text


def all_of(actions: Iterable[Action], expected: type[ResultT]) -> Part[tuple[ResultT, ...]]:
    """The results of actions that don't need each other, in their order; nothing is yielded if there are none."""
    batch = tuple(actions)
    if not batch:
        return ()
    return expect_each((yield Together(batch)), expected)


def texts_of(actions: Iterable[Action]) -> Part[tuple[str, ...]]:
    """The text that each generation wrote, maybe empty; a failed one fails the system."""
    outcomes: tuple[Result | Failure, ...]
    # One failure fails a Together, whose other texts are still wanted if it is but an old record of an empty text.
    try:
        outcomes = yield from all_of(actions, Generated)
    except StepFailed as failed:
        outcomes = failed.outcomes
    return tuple(_text(outcome) for outcome in outcomes)


def text_of(action: Action) -> Part[str]:
    """The text that one generation wrote, maybe empty; a failed one fails the system."""
    try:
        return expect((yield action), Generated).text
    except StepFailed as failed:
        if failed.failure.type != EMPTY_GENERATION:
            raise
        return ""


def texts_before(end: Limited) -> tuple[str, ...]:
    """The texts of those generations yielded together that were written before a budget was used up, maybe empty."""
    return tuple(each.text for each in end.outcomes if isinstance(each, Generated))


def _text(outcome: Result | Failure) -> str:
    if not isinstance(outcome, Failure):
        return expect(outcome, Generated).text
    if outcome.type != EMPTY_GENERATION:
        raise StepFailed(outcome)
    return ""


# A second request in a conversation, about what the model wrote to the first.


def asked_on(prompt: Prompt, written: str, *words: str | Piece) -> Prompt:
    """The conversation with what the model wrote, and these words behind it.

    Where it wrote nothing they go on in the user's turn: servers refuse empty turns.
    """
    return going_on(prompt.wrote(written) if written.strip() else prompt, *words)


def going_on(prompt: Prompt, *words: str | Piece) -> Prompt:
    """The conversation with these words of the user's, in a turn of their own only behind one of somebody else's.

    Servers refuse two of the user's in a row.
    """
    return prompt.append("\n\n", *words) if prompt.turns[-1].role == "user" else prompt.add(user(*words))


T = TypeVar("T")


def in_parallel(parts: Iterable[Part[T]], returned: dict[int, T] | None = None) -> Part[tuple[T, ...]]:
    """Run parts that don't depend on each other in lock step; returns what each of them returns, in their order.

    The next actions of all unfinished parts are yielded in one `Together`. A failure is thrown into the part whose
    action failed, with the outcomes of that part's own actions, and the other parts are sent their results. A failure
    that its part doesn't catch ends all of them. So does a limit; where none has returned by then, the first of those
    that are left learns of it, and may end by its last step.
    returned: takes what each part returns, by its place, so that it is known where the others don't come to their end.
    """
    returned = {} if returned is None else returned
    lanes = tuple(_Lane(part, number, returned) for number, part in enumerate(parts))
    try:
        for lane in lanes:
            lane.start()
        while unfinished := [lane for lane in lanes if lane.number not in returned]:
            try:
                outcomes = yield from _outcomes(tuple(action for lane in unfinished for action in lane.actions))
            except LimitReached as reached:
                _resume(unfinished, reached.outcomes)
                if not returned:
                    yield from unfinished[0].end(reached.limit)
                raise LimitReached(reached.limit) from None
            _resume(unfinished, outcomes)
    finally:
        for lane in lanes:
            lane.part.close()
    return tuple(returned[lane.number] for lane in lanes)


def _resume(lanes: "Sequence[_Lane[T]]", outcomes: tuple[Result | Failure, ...]) -> None:
    """Resume those whose actions have all ended; outcomes: of the first ones."""
    for lane in lanes:
        own, outcomes = outcomes[: len(lane.actions)], outcomes[len(lane.actions) :]
        if len(own) == len(lane.actions):
            lane.resume(own)


def _outcomes(actions: tuple[Action, ...]) -> Part[tuple[Result | Failure, ...]]:
    try:
        return expect_each((yield Together(actions)), Result)
    except StepFailed as failed:
        return failed.outcomes


class _Lane(Generic[T]):
    """A part that runs in parallel with others: the actions that it waits for; `returned` takes what it returns."""

    def __init__(self, part: Part[T], number: int, returned: dict[int, T]) -> None:
        self.part = part
        self.number = number
        self._returned = returned
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

    def end(self, limit: str) -> Part[None]:
        """Tell it of a limit, at which it may take its last step; it returns nothing where it doesn't catch that."""
        with suppress(LimitReached):
            self._take(LimitReached(limit))
            while self.number not in self._returned:
                self.resume((yield from _outcomes(self.actions)))

    def _take(self, reply: Reply | StepFailed | LimitReached | None) -> None:
        try:
            if isinstance(reply, StepFailed | LimitReached):
                self._yielded = self.part.throw(reply)
            else:
                # What starts a generator is None, which the type of a part leaves out.
                self._yielded = next(self.part) if reply is None else self.part.send(reply)
        except StopIteration as stop:
            self._returned[self.number] = stop.value
