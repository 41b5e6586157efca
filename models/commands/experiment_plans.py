"""Recording an experiment's plan, with which it is continued or else refused."""

from typing import Any

import msgspec
from sqlalchemy import Engine, select
from sqlalchemy.dialects.postgresql import insert

from cotrail.engines.identity import is_pinned
from cotrail.errors import InputError
from cotrail.evaluation.experiments.protocols import experiment_of
from models.schema.tables import experiments

MAX_NAMED = 3
"""How many parts of a plan a message names."""


def open_experiment(engine: Engine, experiment_id: str, plan: dict[str, Any]) -> dict[str, Any]:
    """Records an experiment, or goes on with it; raises InputError where it was begun with another plan.

    Returns the recorded plan: models are called in it as when the experiment was begun.
    """
    given = msgspec.json.decode(msgspec.json.encode(plan))
    with engine.begin() as connection:
        row = {"id": experiment_id, "plan": given}
        connection.execute(insert(experiments).values(row).on_conflict_do_nothing())
        recorded = connection.execute(select(experiments.c.plan).where(experiments.c.id == experiment_id)).scalar_one()
    if differing := _differences(_completed(recorded), _completed(_as_pinned(given, recorded))):
        named = ", ".join(differing[:MAX_NAMED]) + (", ..." if len(differing) > MAX_NAMED else "")
        raise InputError(
            f"experiment {experiment_id!r} was begun with another file: {named} differ. "
            "Put the file back as it was to go on, or give the experiment another name to begin anew"
        )
    return dict(recorded)


def _completed(plan: dict[str, Any]) -> dict[str, Any]:
    """A plan with the keys that came to experiments since it was recorded, each with its default."""
    try:
        experiment = experiment_of(plan["experiment"])
    except (KeyError, msgspec.ValidationError):
        return plan
    return plan | {"experiment": msgspec.json.decode(msgspec.json.encode(experiment))}


def _as_pinned(given: dict[str, Any], recorded: dict[str, Any]) -> dict[str, Any]:
    """A plan whose models have the identities that the recorded one has for the same models."""
    models = {name: _pinned(found, name, recorded) for name, found in given.get("models", {}).items()}
    return given | {"models": models} if models else given


def _pinned(found: str, name: str, recorded: dict[str, Any]) -> str:
    pinned: str = recorded.get("models", {}).get(name, found)
    return pinned if is_pinned(found, pinned) else found


def _differences(recorded: Any, given: Any, path: str = "") -> list[str]:
    """Where two plans differ, as paths of keys, each as long as both sides have tables there.

    A key that isn't there is one without a value: an older plan lacks what can be said since.
    """
    if not (isinstance(recorded, dict) and isinstance(given, dict)):
        return [] if recorded == given else [path]
    return [
        found
        for key in sorted(recorded.keys() | given.keys())
        for found in _differences(recorded.get(key), given.get(key), f"{path}.{key}".lstrip("."))
    ]
