"""Drives systems to their end in a made-up world: straight through, and as the store does."""

from collections.abc import Callable

import msgspec

from cotrail.actions import (
    Action,
    Binding,
    Failure,
    Retrieve,
    Retrieved,
    StepFailed,
    System,
    Together,
    fingerprint,
    kind,
)
from cotrail.paragraphs import Hit, Paragraph
from cotrail.replay import Failed, Finished, Next, Outcome, Recorded, advance

BINDING = Binding(model="scripted@1", profile="fast", temperature=0.0, seed=0, corpus="sample@1")
FAILURE = Failure(type="StepError", message="it can't be done")

Trace = list[tuple[Action, Outcome]]
World = Callable[[Action], Outcome]


def search(query: str) -> Retrieve:
    return Retrieve(query=query, count=2)


def found(*titles: str) -> Retrieved:
    hits = (
        Hit(paragraph=Paragraph(id=title, title=title, text=f"On {title}."), rank=rank, score=1 / rank)
        for rank, title in enumerate(titles, start=1)
    )
    return Retrieved(hits=tuple(hits))


def record(action: Action, outcome: Outcome | None = None, unreadable: str | None = None) -> Recorded:
    return Recorded(kind=kind(action), fingerprint=fingerprint(action, BINDING), outcome=outcome, unreadable=unreadable)


def live(system: System, world: World) -> tuple[Trace, Finished | Failed]:
    """Drives a system straight through, without the driver."""
    trace: Trace = []
    reply: Callable[[], Action | Together] = lambda: next(system)  # noqa: E731
    while True:
        try:
            yielded = reply()
        except StopIteration as stop:
            return trace, Finished(stop.value)
        except StepFailed as failed:
            return trace, Failed(failed.failure)
        actions = yielded.actions if isinstance(yielded, Together) else (yielded,)
        outcomes = tuple(world(action) for action in actions)
        trace += zip(actions, outcomes, strict=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
        if failures:
            reply = lambda f=failures[0]: system.throw(StepFailed(f))  # type: ignore[misc]  # noqa: E731
        else:
            sent = outcomes if isinstance(yielded, Together) else outcomes[0]
            reply = lambda s=sent: system.send(s)  # type: ignore[misc]  # noqa: E731


def replayed(system: Callable[[], System], world: World) -> tuple[Trace, Finished | Failed]:
    """Drives a system as the store does: a replay after each batch of results, which went through JSON."""
    trace: Trace = []
    while True:
        history = [record(action, outcome) for action, outcome in trace]
        following = advance(system, history, BINDING)
        if not isinstance(following, Next):
            return trace, following
        for step in following.steps:
            outcome = world(step.action)
            stored = msgspec.json.decode(msgspec.json.encode(outcome), type=type(outcome))
            trace.append((step.action, stored))
