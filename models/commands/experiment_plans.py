"""Recording the plan of an experiment, which never changes afterwards."""

from collections.abc import Callable
from typing import Any

import msgspec
from sqlalchemy import Engine, select
from sqlalchemy.dialects.postgresql import insert

from cotrail.engines.model_identity import is_pinned
from cotrail.errors import InputError
from cotrail.models.records.projects import own_project
from cotrail.models.schema.tables import experiments

MAX_NAMED = 3
"""The largest number of differing parts of a plan that a message names."""

Plan = dict[str, Any]


def open_experiment(engine: Engine, experiment_id: str, plan: Plan, complete: Callable[[Plan], Plan]) -> Plan:
    """Record an experiment, or continue one; raises InputError where it was begun with another plan.

    complete: adds to a plan, recorded by an earlier version, the keys that experiments have had since
    (`cotrail.evaluation.experiments.registry.complete_plan`).
    Returns the recorded plan: an experiment keeps the models' identities that it was begun with.
    """
    given = msgspec.json.decode(msgspec.json.encode(plan))
    with engine.begin() as connection:
        row = {"id": experiment_id, "plan": given, "project": own_project(connection)}
        # Insert, then read: of processes that begin the same experiment at once, one records its plan and all read it.
        connection.execute(insert(experiments).values(row).on_conflict_do_nothing())
        recorded = connection.execute(select(experiments.c.plan).where(experiments.c.id == experiment_id)).scalar_one()
    former, now = (_without_nulls(complete(each)) for each in (recorded, _as_pinned(given, recorded)))
    if differing := _differences(former, now):
        named = ", ".join(differing[:MAX_NAMED]) + (", ..." if len(differing) > MAX_NAMED else "")
        raise InputError(
            f"experiment {experiment_id!r} was begun with another file: {named} differ. "
            "Put the file back as it was to continue, or give the experiment another name to begin a new one"
        )
    return dict(recorded)


def _as_pinned(given: Plan, recorded: Plan) -> Plan:
    """Return a plan whose models have the identities that the recorded one has for the same models."""
    models: dict[str, str] = given.get("models", {})
    pinned = models | {name: each for name, each in recorded.get("models", {}).items() if name in models}
    kept = {name: pinned[name] if is_pinned(identity, pinned[name]) else identity for name, identity in models.items()}
    return given | {"models": kept} if kept else given


def _without_nulls(value: Any) -> Any:
    """Return a plan without the keys that have no value: an earlier version's plan lacks some of these keys."""
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(each) for key, each in value.items() if each is not None}


def _differences(recorded: Any, given: Any, path: str = "") -> list[str]:
    """Return where two plans differ, as paths of keys, each as long as both sides have tables there."""
    if not (isinstance(recorded, dict) and isinstance(given, dict)):
        return [] if recorded == given else [path]
    return [
        difference
        for key in sorted(recorded.keys() | given.keys())
        for difference in _differences(recorded.get(key), given.get(key), f"{path}.{key}".lstrip("."))
    ]
