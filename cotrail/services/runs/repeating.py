"""Repeating steps: a run that takes over what another recorded before each of some steps, and continues from there.

Nothing else is adopted: the drawn step and all that follow are computed again, with the same models, seed and settings.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.common.nearest import unknown
from cotrail.core.actions.registry import KINDS, has_prompt
from cotrail.core.repeats import REPEATED_STEPS, SHARE, RepeatedSteps, read_repeated_steps
from cotrail.errors import InputError
from cotrail.evaluation.metrics.repeated_scores import draw_steps
from cotrail.models.commands.forking import fork
from cotrail.models.queries.listed_questions import read_submitted
from cotrail.models.queries.repeated_steps import Replayed, read_candidates, replay_run
from cotrail.models.queries.runs import read_run, resolve_run
from cotrail.models.records.budgets import read_budgets
from cotrail.models.records.runs import Runs
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs.forking import prepare_fork
from cotrail.services.runs.labels import find_run
from cotrail.services.runs.pinning import with_plan
from cotrail.services.store import open_store, reading, reading_from
from cotrail.systems.registry import find_system

MODEL_KINDS = tuple(filter(has_prompt, KINDS))
"""The kinds of steps that language models carry out."""


class Repeating(Struct, frozen=True, kw_only=True):
    """A run; origin: the one whose steps it repeats, None where it repeats none."""

    run: str
    origin: str | None


class RepeatedRun(Struct, frozen=True, kw_only=True):
    """A run that repeats steps of another one.

    questions: how many of the origin's have steps that may be drawn; steps: how many were, one of a question.
    """

    run: str
    origin: str
    questions: int
    steps: int


def read_share(text: str) -> float:
    """A share written as `2%` or `0.02`; raises InputError."""
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = 0.0
    if rest or not 0 < share <= 1:
        raise InputError(f"{text!r} is no share of the questions: write 2% or 0.02, above 0 and up to 100%")
    return share


@operation("repeats.origin", "GET", "/runs/{run}/repeats/origin", Scope.READ)
def origin_of(run: str) -> Repeating:
    """Say whose steps a run repeats, if it repeats any."""
    with reading() as connection:
        record = find_run(connection, run)
        return Repeating(run=record.id, origin=record.origin if read_repeated_steps(record.provenance) else None)


def read_repeated(connection: Connection, runs: Sequence[str]) -> RepeatedRun:
    """A run that repeats steps, as its beginning was answered; its origin may have more such questions by now."""
    [run_id] = runs
    drawn = msgspec.convert(read_run(connection, run_id).provenance[REPEATED_STEPS], RepeatedSteps)
    candidates = read_candidates(connection, drawn.run, drawn.kinds)
    return RepeatedRun(run=run_id, origin=drawn.run, questions=len(candidates), steps=len(drawn.steps))


def _chosen(kinds: Iterable[str]) -> tuple[str, ...]:
    """The kinds, each once; raises InputError for one that there isn't."""
    named = tuple(dict.fromkeys(kinds)) or MODEL_KINDS
    if missing := [kind for kind in named if kind not in KINDS]:
        raise InputError(unknown("kind of step", missing[0], KINDS))
    return named


Share = Annotated[float, Meta(gt=0, le=1)]
Seed = Annotated[int, Meta(ge=0, le=2**31 - 1)]


@operation("repeats.begin", "POST", "/runs/{run}/repeats", Scope.SUBMIT, status=201, replayed=read_repeated)
def begin_repeating(run: str, *, share: Share = SHARE, seed: Seed = 0, kinds: Sequence[str] = ()) -> RepeatedRun:
    """Carry out some steps of a run again, in a run of their own.

    share: of the questions of which a step is repeated; seed: draws the questions and their steps; kinds: of the steps
    that are drawn from, all that language models carry out by default.
    """
    # Raises what a fork does.
    with open_store() as engine:
        chosen = _chosen(kinds)
        with reading_from(engine) as connection:
            origin = find_run(connection, run)
            shots = Runs(find_system).plan(connection, origin.id).shots
            budgets = read_budgets(connection, origin.id)
            candidates = read_candidates(connection, origin.id, chosen)
            if not candidates:
                raise InputError(
                    f"run {origin.id} has no {' or '.join(chosen)} step with a result yet; --kind names others"
                )
            steps = draw_steps(candidates, share, seed)
            questions = read_submitted(connection, origin.id, steps.keys())
        drawn = RepeatedSteps(run=origin.id, kinds=chosen, share=share, seed=seed, steps=steps)
        submission = prepare_fork(origin, shots, budgets, {}, None)
        provenance = {**submission.provenance, REPEATED_STEPS: msgspec.to_builtins(drawn)}
        planned = with_plan(replace(submission, provenance=provenance), questions)
        fork(engine, planned, drawn.steps, find_system, drawn.steps.keys())
        return RepeatedRun(run=submission.id, origin=origin.id, questions=len(candidates), steps=len(drawn.steps))


class ReplayedRun(Struct, frozen=True, kw_only=True):
    """A run that was replayed.

    questions, steps: how many there are; diverged: the questions for which the code departs from the record.
    edited: the numbers of the steps that people edited, by their question's id.
    """

    run: str
    questions: int
    steps: int
    diverged: tuple[Replayed, ...]
    edited: dict[str, tuple[int, ...]] = {}


def replay(connection: Connection, run: str) -> ReplayedRun:
    """Runs the system's code over a run's recorded steps; needs no model and no index, and changes nothing."""
    run_id = resolve_run(connection, run)
    questions = steps = 0
    diverged = []
    edited: dict[str, tuple[int, ...]] = {}
    for question in replay_run(connection, run_id, find_system):
        questions += 1
        steps += question.steps
        if question.divergence:
            diverged.append(question)
        if question.edited:
            edited[question.key] = question.edited
    return ReplayedRun(run=run_id, questions=questions, steps=steps, diverged=tuple(diverged), edited=edited)


@operation("replays.show", "GET", "/runs/{run}/replay", Scope.READ)
def show_replay(run: str) -> ReplayedRun:
    """Run the system's code over a run's recorded steps, and report where it diverges; nothing is changed."""
    with reading() as connection:
        return replay(connection, run)
