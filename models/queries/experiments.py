"""Experiments as they are stored: the plan that they were begun with, and the runs that belong to them."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Engine, select
from sqlalchemy.dialects.postgresql import insert

from cotrail.engines.model_identity import is_pinned
from cotrail.errors import InputError, UnknownNameError
from cotrail.evaluation.experiments.protocols import experiment_of
from models.queries.progress import LATEST
from models.schema.tables import experiments, runs

MAX_NAMED = 3
"""How many parts of a plan a message names."""


class ExperimentRecord(Struct, frozen=True, kw_only=True):
    """An experiment.

    plan: its file as it was read when it was begun, every default spelled out; runs: the ids of its runs by cell.
    """

    id: str
    created_at: datetime
    plan: dict[str, Any]
    runs: dict[str, str]


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


def read_experiment(connection: Connection, experiment_id: str) -> ExperimentRecord:
    """An experiment and its runs, in the order of their submission; raises UnknownNameError."""
    row = connection.execute(select(experiments).where(experiments.c.id == experiment_id)).one_or_none()
    if row is None:
        raise _unknown(connection, experiment_id)
    of_cells = select(runs.c.cell, runs.c.id).where(runs.c.experiment_id == experiment_id, runs.c.cell.is_not(None))
    cells = dict(connection.execute(of_cells.order_by(runs.c.created_at, runs.c.id)).all())
    return ExperimentRecord(id=row.id, created_at=row.created_at, plan=row.plan, runs=cells)


def experiment_ids(connection: Connection) -> list[str]:
    """All experiments, the newest first."""
    newest = select(experiments.c.id).order_by(experiments.c.created_at.desc(), experiments.c.id.desc())
    return list(connection.execute(newest).scalars())


def resolve_experiment(connection: Connection, given: str) -> str:
    """The id of the experiment that is meant, by its id or `latest`; raises UnknownNameError."""
    known = experiment_ids(connection)
    if given in known:
        return given
    if given == LATEST and known:
        return known[0]
    raise _unknown(connection, given)


def _unknown(connection: Connection, given: str) -> UnknownNameError:
    known = experiment_ids(connection)
    there_are = (
        f"there are {', '.join(known)}" if known else "there is none yet; `cotrail experiment run FILE` begins one"
    )
    return UnknownNameError(f"there is no experiment {given!r}; {there_are}")


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
