"""Runs of any system, whose steps have the outcomes that a test wants: submitted, carried out, and closed."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Engine, select, update

from benchmarks.contenders.cotrail import submission
from cotrail.core.actions.generate import Prompted
from cotrail.core.actions.retrieve import Lookup, Open, Retrieve
from cotrail.core.history import Outcome
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.core.results import Failure, Generated, Retrieved
from cotrail.core.system import Action
from cotrail.engines.language_models.scripted import ScriptedModel
from cotrail.models.commands.submission import submit
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.runs import PRICES, FindSystem
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import questions, steps
from cotrail.systems.registry import find_system
from cotrail.systems.spec import SystemSpec
from tests.integration.stepping import LEASE, MILLISECONDS, close_runs, completed
from tests.replay.driving import MadeUp, World, found_paragraphs
from tests.replay.test_properties import SHOTS

FAILURE = Failure(type="StepError", message="the model broke off")
NOTHING = Retrieved(hits=())
RATES = {"input": "1", "cached": "1", "cache_written": "1", "output": "10"}
PRICED = {PRICES: {"model": {"rates": [RATES], "source": "models.toml"}}}

VELL = Paragraph(id="vell", title="Vell", text="The Vell flows through Marlow.")
MARLOW = Paragraph(id="marlow", title="Marlow", text="Marlow is a town on the Vell.")
FOUND = (VELL, MARLOW)
NEVER = GoldParagraph(title="Never", text="Nobody finds it.")

State = Callable[[Engine, str], object]
"""Records a run under that id."""


def gold(*paragraphs: Paragraph) -> tuple[GoldParagraph, ...]:
    return tuple(GoldParagraph(title=each.title, text=each.text) for each in paragraphs)


def asked(*keys: str, text: str = "Which town lies on the Vell?", **further: Any) -> list[Question]:
    """Questions of these keys; further: of each."""
    return [Question(id=key, text=text, **{"answers": ("Marlow",), "gold": (NEVER,)} | further) for key in keys]


def writes(answer: str = "Marlow", sentences: Sequence[str] = ("It lies on the Vell.",), **finds: Any) -> World:
    """A world in which the model writes this about every question; finds: see `MadeUp`."""
    said = {"sentences": tuple(sentences), "answer": answer}
    return MadeUp(ScriptedModel({"name": "odd", "questions": {}, "default": said}), **finds)


def finding(paragraphs: Sequence[Paragraph], world: World) -> World:
    """The same world, where every search finds these paragraphs, as many as it asks for."""

    def outcome(action: Action) -> Outcome:
        if isinstance(action, Retrieve | Lookup | Open):
            count = action.count if isinstance(action, Retrieve) else len(paragraphs)
            return found_paragraphs(*paragraphs[:count])
        return world(action)

    return outcome


def wordless(action: Action) -> Outcome:
    """A world in which models write nothing, and nothing is found."""
    if isinstance(action, Prompted):
        return Failure(type="EmptyGenerationError", message="the model wrote nothing")
    return NOTHING if isinstance(action, Retrieve | Lookup | Open) else writes()(action)


def failing(_: Action) -> Outcome:
    """A world in which nothing works."""
    return FAILURE


def failing_after(steps: int, world: World) -> World:
    """A world in which nothing works after so many steps."""
    carried_out = iter(range(steps))
    return lambda action: FAILURE if next(carried_out, None) is None else world(action)


def saying(text: str, world: World) -> World:
    """The same world, where models write exactly this."""

    def outcome(action: Action) -> Outcome:
        usual = world(action)
        return replace(usual, text=text, raw=text) if isinstance(usual, Generated) else usual

    return outcome


def begin(
    engine: Engine,
    run: str,
    asked: Sequence[Question],
    /,
    spec: SystemSpec | None = None,
    find: FindSystem = find_system,
    **changes: Any,
) -> None:
    """Submits a run of a system, IRCoT where none is given; changes: of what is submitted."""
    spec = spec or find_system("ircot")
    chosen = replace(
        submission(),
        id=run,
        system=spec.name,
        system_version=spec.version,
        settings=msgspec.to_builtins(spec.settings()),
        shots={**SHOTS, **spec.needs(spec.settings()).brought},
        provenance={"cotrail": "of a test", "python": "3"},
    )
    submit(engine, replace(chosen, **changes), asked, find)


def carry_out(
    engine: Engine,
    run: str,
    worlds: Mapping[str, World] | World,
    most: int | None = None,
    find: FindSystem = find_system,
    taking: float = MILLISECONDS,
) -> None:
    """Carries out a run's steps, `most` at most; worlds: by the key of their question, or one for all.

    Questions whose keys have no world aren't begun.
    """
    ledger, keys = Ledger(engine, "w", LEASE, find), _keys(engine, run)
    world_of = {id_: worlds.get(key) if isinstance(worlds, Mapping) else worlds for id_, key in keys.items()}
    left = math.inf if most is None else most
    messages = due(engine, run, [id_ for id_, world in world_of.items() if world is not None])
    while messages and left > 0:
        for claim in filter(None, ledger.claim([messages.pop(0)])):
            world = world_of[claim.question_id]
            assert world is not None
            done = replace(completed(claim, claim.given or world(claim.carried_out)), milliseconds=taking)
            messages += [each for following in ledger.commit([done]) for each in following]
            left -= 1


def ended(
    engine: Engine,
    run: str,
    asked: Sequence[Question],
    worlds: Mapping[str, World] | World,
    /,
    spec: SystemSpec | None = None,
    **changes: Any,
) -> None:
    """A run whose steps are all carried out, and which is closed."""
    begin(engine, run, asked, spec, **changes)
    carry_out(engine, run, worlds)
    assert close_runs(engine) == [run], run


def due(engine: Engine, run: str, of: Sequence[int] | None = None) -> list[Dispatch]:
    """The messages of a run's steps, as if maintenance had admitted all its questions; of: those of these alone."""
    chosen = [steps.c.run_id == run, steps.c.state.in_((StepState.WAITING, StepState.READY))]
    chosen += [] if of is None else [steps.c.question_id.in_(of)]
    with engine.begin() as connection:
        connection.execute(update(steps).where(*chosen).values(state=StepState.READY))
        rows = connection.execute(select(steps.c.id, steps.c.epoch, steps.c.kind).where(*chosen).order_by(steps.c.id))
        return [Dispatch(row.id, row.epoch, row.kind) for row in rows]


def _keys(engine: Engine, run: str) -> dict[int, str]:
    with engine.connect() as connection:
        rows = connection.execute(select(questions.c.id, questions.c.key).where(questions.c.run_id == run))
        return {row.id: row.key for row in rows}
