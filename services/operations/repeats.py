"""Repeated steps: some of a run's steps, carried out again in a run of their own."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from cotrail.core.repeats import SHARE
from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs.repeating import RepeatedRun, Repeating, read_repeated, repeat_steps, repeated_by
from cotrail.services.store import open_store, reading
from cotrail.services.views.repeated_steps import RepeatReport, read_repeat_report

Share = Annotated[float, Meta(gt=0, le=1)]
Seed = Annotated[int, Meta(ge=0, le=2**31 - 1)]


@operation("GET", "/runs/{run}/repeats/origin", Scope.READ)
def origin(run: str) -> Repeating:
    """Say whose steps a run repeats, if it repeats any."""
    with reading() as connection:
        return repeated_by(connection, run)


def _repeated_before(runs: Sequence[str]) -> RepeatedRun:
    with reading() as connection:
        return read_repeated(connection, runs[0])


@operation("POST", "/runs/{run}/repeats", Scope.SUBMIT, status=201, again=_repeated_before)
def begin(run: str, *, share: Share = SHARE, seed: Seed = 0, kinds: Sequence[str] = ()) -> RepeatedRun:
    """Carry out some steps of a run again, in a run of their own.

    share: of the questions of which a step is repeated; seed: draws the questions and their steps; kinds: of the steps
    that are drawn from, all that language models carry out by default.
    """
    with open_store() as engine:
        return repeat_steps(engine, run, share=share, seed=seed, kinds=kinds)


@operation("GET", "/runs/{run}/repeats", Scope.READ)
def show(run: str) -> RepeatReport:
    """Say what came out otherwise in a run that repeats steps of another one."""
    with reading() as connection:
        return read_repeat_report(connection, run)
