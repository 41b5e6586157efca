"""The driver: runs a system over the recorded results and says what comes next.

It hands the generator the recorded results in order, and holds each action that it yields against the record. The
comparison is made out here, where no `except` of a system can hide it. A replay may be dropped at any time: another one
comes to where it stood from the beginning of the record.
"""

import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from cotrail.common.processes import ending_within
from cotrail.common.structs import shortened
from cotrail.core.actions.registry import fingerprint, kind_of
from cotrail.core.binding import Binding
from cotrail.core.history import Failed, Finished, Halt, Next, Outcome, Recorded, Step
from cotrail.core.questions import Paragraph
from cotrail.core.results import Failure, Result
from cotrail.core.search_ways import in_the_way_of
from cotrail.core.system import Action, Answer, LimitReached, StepFailed, System, Together
from cotrail.errors import BlockedError, ReplayMismatchError

_Sent = Result | tuple[Result, ...] | StepFailed | LimitReached | None
"""What a system is resumed with; None starts it."""

MOST_SECONDS = 30.0
"""How long a system's code may take from one yield to the next; it takes milliseconds."""


class EndlessError(Exception):
    """Raised within a system's code that doesn't yield."""

    def __str__(self) -> str:
        return f"it took more than {MOST_SECONDS:.0f} s from one yield to the next"


FURTHER_STEPS = 50
"""The most steps of a question behind its limit: a system needs a few to answer by what it found."""


class SystemBrokenError(BlockedError):
    """The system's own code raised an error, or yielded what isn't an action."""


class Replay:
    """A system as far as the record has brought it.

    It may be kept and continued when the record has grown: what came before isn't run again.
    watched: whether the system's code is ended where it never yields, as code of others is.
    """

    def __init__(self, system: Callable[[], System], binding: Binding, *, watched: bool = False) -> None:
        self._running = in_the_way_of(binding, system())
        self._binding = binding
        self._watched = watched
        self._position = 0
        self._yielded: Action | Together | Finished | Failed | None = None
        self._steps: tuple[Step, ...] = ()
        self._limit = ""

    def advance(self, history: Sequence[Recorded], halt: Halt | None = None) -> Next | Finished | Failed:
        """Hands the system what was recorded and returns what follows it.

        history: the question's steps in sequence, without gaps; what was handed in before is its beginning, the same.
        halt: where a budget ended it; the system learns it there, and answers from what it has found.
        Raises ReplayMismatchError where the record and the code disagree, SystemBrokenError where the code is at fault;
        the replay must be discarded then.
        """
        yielded = self._yielded or self._resume(None)
        while not isinstance(yielded, Finished | Failed):
            if halt is not None and self._limit and self._position >= halt.after + FURTHER_STEPS:
                yielded = self._yielded = self._cut_off()
                break
            following = self._position + len(self._steps)
            is_last = halt is not None and not self._limit and self._position <= halt.after < following
            if halt is not None and is_last:
                following = halt.after
            recorded, awaited = history[self._position : following], following - self._position
            for step, record in zip(self._steps, recorded, strict=False):
                _compare(step, record)
            if len(recorded) < awaited:
                return Next(self._steps[len(recorded) : awaited])
            outcomes = [record.outcome for record in recorded if record.outcome is not None]
            if len(outcomes) < len(recorded):
                _no_further(history, following, "it waits for earlier ones")
                return Next(())
            self._position = following
            if halt is not None and is_last:
                self._limit = halt.limit
                yielded = self._resume(LimitReached(halt.limit, tuple(outcomes)))
            else:
                yielded = self._resume(_reply(yielded, outcomes))
        how = "finished" if isinstance(yielded, Finished) else f"failed ({yielded.failure.type})"
        _no_further(history, self._position, f"it is {how}")
        return yielded

    def close(self) -> None:
        """Ends a system that isn't continued; raises SystemBrokenError where its code is at fault."""
        if isinstance(self._yielded, Finished):
            return  # it has ended, or was cut off because it can't be
        try:
            self._running.close()
        except Exception as error:
            raise _broken(error) from error

    def _cut_off(self) -> Finished:
        """Ends a system that still asks behind its limit, as one that catches every error does."""
        with suppress(Exception):  # where it catches even this
            self._running.close()
        return Finished(Answer(text="", limit=self._limit))

    def _resume(self, reply: _Sent) -> Action | Together | Finished | Failed:
        # Only code of others is watched: a timer costs as much as a step of the store's.
        watched = ending_within(MOST_SECONDS, EndlessError) if self._watched else nullcontext()
        with watched:
            yielded = _resume(self._running, reply)
        if isinstance(yielded, Finished) and self._limit:
            yielded = Finished(replace(yielded.answer, limit=self._limit))
        if not isinstance(yielded, Finished | Failed):
            self._steps = _number(_actions(yielded, self._position), self._position, self._binding)
        self._yielded = yielded
        return yielded


def advance(
    system: Callable[[], System], history: Sequence[Recorded], binding: Binding, halt: Halt | None = None
) -> Next | Finished | Failed:
    """Replays `history` from its beginning and returns what follows it.

    history: the question's steps in sequence, without gaps; halt: where a budget ended it.
    Raises ReplayMismatchError where the record and the code disagree, SystemBrokenError where the code is at fault.
    """
    replay = Replay(system, binding)
    try:
        following = replay.advance(history, halt)
    except BaseException:
        with suppress(Exception):  # what was found first is what counts
            replay.close()
        raise
    replay.close()
    return following


def agreement(system: Callable[[], System], history: Sequence[Recorded], binding: Binding) -> int:
    """How many of these steps, from the first one on, the code still asks for as they are recorded."""
    try:
        advance(system, history, binding)
    except ReplayMismatchError as error:
        return error.sequence
    return len(history)


def _resume(running: System, reply: _Sent) -> Action | Together | Finished | Failed:
    """Runs the system up to its next yield; `reply` None starts it."""
    try:
        if reply is None:
            return next(running)
        if isinstance(reply, StepFailed | LimitReached):
            return running.throw(reply)
        return running.send(reply)
    except StopIteration as stop:
        return Finished(_answer(stop.value))
    except StepFailed as uncaught:
        return Failed(uncaught.failure)
    except LimitReached as uncaught:
        return Finished(Answer(text="", limit=uncaught.limit))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _broken(error) from error


def _answer(returned: object) -> Answer:
    """What a system returned; raises SystemBrokenError where that is no answer, or can't be recorded."""
    if not isinstance(returned, Answer):
        raise SystemBrokenError(f"the system returned {returned!r} where an Answer is due; fix it")
    try:
        written = msgspec.json.encode((returned.text, returned.sentences, returned.paragraphs))
        msgspec.json.decode(written, type=tuple[str, tuple[str, ...], tuple[Paragraph, ...]])
    except (TypeError, ValueError) as error:
        raise SystemBrokenError(f"fix what the system returned, {returned!r}: it can't be recorded ({error})") from None
    return returned


def _no_further(history: Sequence[Recorded], position: int, reason: str) -> None:
    if position < len(history):
        raise ReplayMismatchError(position, _describe(history[position]), f"no step: {reason}")


def _actions(yielded: object, position: int) -> tuple[Action, ...]:
    actions = yielded.actions if isinstance(yielded, Together) else (yielded,)
    if not actions or not all(isinstance(action, Action) for action in actions):
        raise SystemBrokenError(f"the system yielded {yielded!r} at step {position}, which isn't an action; fix it")
    return actions  # type: ignore[return-value]  # checked above


def _number(actions: tuple[Action, ...], position: int, binding: Binding) -> tuple[Step, ...]:
    try:
        return tuple(
            Step(sequence=sequence, action=action, fingerprint=fingerprint(action, binding))
            for sequence, action in enumerate(actions, start=position)
        )
    except (TypeError, ValueError) as error:
        raise SystemBrokenError(
            f"the system yielded an action at step {position} that can't be written down ({error}); fix it"
        ) from error


def _compare(step: Step, record: Recorded) -> None:
    if kind_of(step.action).name != record.kind:
        raise ReplayMismatchError(step.sequence, _describe(record), f"another kind, {_yielded(step)}")
    if step.fingerprint != record.fingerprint and not record.given:
        raise ReplayMismatchError(
            step.sequence, _describe(record), f"the same kind with another input, {_yielded(step)}"
        )
    if record.unreadable is not None:
        raise ReplayMismatchError(step.sequence, f"a result that can't be read ({record.unreadable})", _yielded(step))


def _yielded(step: Step) -> str:
    return f"{kind_of(step.action).name} {shortened(step.fingerprint)}"


def _reply(yielded: Action | Together, outcomes: list[Outcome]) -> Result | tuple[Result, ...] | StepFailed:
    """What the system is sent: the results as yielded, or the first failure among them."""
    results: list[Result] = []
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            return StepFailed(outcome, tuple(outcomes))
        results.append(outcome)
    return tuple(results) if isinstance(yielded, Together) else results[0]


def _broken(error: BaseException) -> SystemBrokenError:
    # What a generator raises in place of StopIteration is raised outside of its code.
    raised = error.__cause__ if isinstance(error.__cause__, StopIteration) else error
    frames = traceback.extract_tb(raised.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return SystemBrokenError(
        f"the system's code raised {type(error).__name__}{place}: {error}; fix it, then `cotrail resume RUN` continues"
    )


def _describe(record: Recorded) -> str:
    return f"{record.kind} {shortened(record.fingerprint)}"
