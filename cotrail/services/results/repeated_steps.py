"""What came out otherwise when steps of a run were carried out again."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cotrail.core.actions.registry import KINDS, has_prompt
from cotrail.core.binding import FURTHER_CORPUS, Binding
from cotrail.core.repeats import RepeatedSteps, read_repeated_steps
from cotrail.errors import InputError, UnknownNameError
from cotrail.evaluation.metrics.repeated_scores import OtherwiseShare as OtherwiseShare
from cotrail.evaluation.metrics.repeated_scores import otherwise_share
from cotrail.models.queries.repeated_steps import Pair, Side, read_pairs
from cotrail.models.records.runs import Runs
from cotrail.models.schema.states import StepState
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs.labels import find_run
from cotrail.services.store import reading
from cotrail.systems.registry import find_system


class EngineShare(Struct, frozen=True, kw_only=True):
    """The steps of a kind that one engine carried out; engine: a model's name and digest, or a corpus."""

    kind: str
    engine: str
    profile: str
    steps: OtherwiseShare


class DifferingStep(Struct, frozen=True, kw_only=True):
    """A step that came out otherwise; recorded, again: the texts, or what else was recorded."""

    question: str
    step: int
    kind: str
    recorded: str
    again: str


class RepeatReport(Struct, frozen=True, kw_only=True):
    """What came out otherwise.

    run: the run that carried the steps out again; origin: whose steps they are. drawn: how many.
    open: those that haven't ended yet; failed: those that ended without a result. changed: those that were asked for
        otherwise, though nothing was set: the code of the system is another. None of these are in the shares.
    removed: those that are no longer recorded.
    by_engine: the shares by kind of step and engine; steps: of all of them. answers: of the questions' answers, where
        both runs have one.
    """

    run: str
    origin: str
    share: float
    seed: int
    drawn: int
    open: int
    failed: int
    changed: int
    removed: int
    by_engine: tuple[EngineShare, ...]
    steps: OtherwiseShare
    answers: OtherwiseShare
    differing: tuple[DifferingStep, ...]


@operation("repeats.show", "GET", "/runs/{run}/repeats", Scope.READ)
def show_repeats(run: str) -> RepeatReport:
    """Say what came out otherwise in a run that repeats steps of another one."""
    # As it stands; raises InputError for another run.
    with reading() as connection:
        record = find_run(connection, run)
        repeated = read_repeated_steps(record.provenance)
        if repeated is None:
            raise InputError(f"run {record.id} repeats no steps of another one; `cotrail repeat` begins one that does")
        pairs = read_pairs(connection, record.id, repeated)
        if not pairs:
            raise UnknownNameError(f"run {repeated.run}, of which {record.id} repeats steps, was removed")
        return _report(record.id, repeated, pairs, Runs(find_system).plan(connection, record.id).binding)


def _report(run: str, repeated: RepeatedSteps, pairs: Sequence[Pair], binding: Binding) -> RepeatReport:
    compared = [(pair, again) for pair in pairs if (again := _comparable(pair))]
    groups: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for pair, again in compared:
        groups[again.kind, _engine(binding, again)].append(_differs(pair.recorded, again))
    answers = [(pair.recorded.answer, pair.again.answer) for pair in pairs if pair.again]
    return RepeatReport(
        run=run,
        origin=repeated.run,
        share=repeated.share,
        seed=repeated.seed,
        drawn=len(repeated.steps),
        open=sum(
            pair.again is None or pair.again.state not in (StepState.FINISHED, StepState.FAILED) for pair in pairs
        ),
        failed=sum(pair.again is not None and pair.again.state == StepState.FAILED for pair in pairs),
        changed=sum(pair.again is not None and _is_another(pair.recorded, pair.again) for pair in pairs),
        removed=len(repeated.steps) - len(pairs),
        by_engine=tuple(
            EngineShare(kind=kind, engine=engine, profile=binding.profile, steps=otherwise_share(found))
            for (kind, engine), found in sorted(groups.items())
        ),
        steps=otherwise_share([_differs(pair.recorded, again) for pair, again in compared]),
        answers=otherwise_share([one != other for one, other in answers if None not in (one, other)]),
        differing=tuple(_differing(pair, again) for pair, again in compared if _differs(pair.recorded, again)),
    )


def _is_another(recorded: Side, again: Side) -> bool:
    """Return whether it is another step that was asked for."""
    return recorded.fingerprint != again.fingerprint


def _comparable(pair: Pair) -> Side | None:
    """The step as it was carried out again, where that is the same step and has a result."""
    again = pair.again
    return again if again and again.result is not None and not _is_another(pair.recorded, again) else None


def _differs(recorded: Side, again: Side) -> bool:
    return said(recorded.kind, recorded.result or {}) != said(again.kind, again.result or {})


def said(kind: str, result: Mapping[str, Any]) -> object:
    """What of a stored result a system continues with: a model's text and calls; all of it of other kinds of steps."""
    if not has_prompt(kind):
        return result
    calls = [(call.get("name"), call.get("arguments")) for call in result.get("calls", ())]
    return result.get("text"), calls


def _differing(pair: Pair, again: Side) -> DifferingStep:
    texts = [_text(side.kind, side.result or {}) for side in (pair.recorded, again)]
    return DifferingStep(question=pair.question, step=pair.step, kind=again.kind, recorded=texts[0], again=texts[1])


def _text(kind: str, result: Mapping[str, Any]) -> str:
    if not has_prompt(kind):
        return ", ".join(f"{name} {value}" for name, value in result.items())
    calls = [f"{call.get('name')}({call.get('arguments')})" for call in result.get("calls", ())]
    return " ".join(filter(None, (result.get("text"), *calls)))


def _engine(binding: Binding, side: Side) -> str:
    """What carries such a step out, as the run pins it."""
    kind = KINDS[side.kind]
    if kind.pinned is None:
        return ""
    name = kind.pinned if isinstance(kind.pinned, str) else kind.pinned(side.request)
    if name.startswith(FURTHER_CORPUS):
        return binding.corpus(name.removeprefix(FURTHER_CORPUS))[0]
    return binding.engine(name)
