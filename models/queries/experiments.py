"""Experiments: the plan that each was begun with, and its runs."""

from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, select

from cotrail.common.nearest import unknown
from cotrail.errors import UnknownNameError
from cotrail.models.queries.runs import LATEST
from cotrail.models.records.projects import BETWEEN, in_project, project_of
from cotrail.models.schema.tables import experiments, runs


class ExperimentRecord(Struct, frozen=True, kw_only=True):
    """An experiment.

    plan: all that decides its results, every default spelled out; runs: the ids of its runs by cell.
    """

    id: str
    created_at: datetime
    plan: dict[str, Any]
    runs: dict[str, str]


def read_experiment(connection: Connection, experiment_id: str) -> ExperimentRecord:
    """Return an experiment and its runs, in the order of their submission; raises UnknownNameError."""
    of_id = experiments.c.id == experiment_id, *in_project(connection, experiments)
    row = connection.execute(select(experiments).where(*of_id)).one_or_none()
    if row is None:
        raise _unknown(connection, experiment_id)
    of_cells = select(runs.c.cell, runs.c.id).where(runs.c.experiment_id == experiment_id, runs.c.cell.is_not(None))
    cells = dict(connection.execute(of_cells.order_by(runs.c.created_at, runs.c.id)).all())
    return ExperimentRecord(id=row.id, created_at=row.created_at, plan=row.plan, runs=cells)


def experiment_ids(connection: Connection) -> list[str]:
    """Return the ids of all experiments, the newest first."""
    own = select(experiments.c.id).where(*in_project(connection, experiments))
    newest = own.order_by(experiments.c.created_at.desc(), experiments.c.id.desc())
    return list(connection.execute(newest).scalars())


def resolve_experiment(connection: Connection, text: str) -> str:
    """Return the id of an experiment given by its id, its name in its project, or `latest`; raises UnknownNameError."""
    ids = experiment_ids(connection)
    for each in (f"{project_of(connection)}{BETWEEN}{text}", text):
        if each in ids:
            return each
    if text == LATEST and ids:
        return ids[0]
    raise _unknown(connection, text)


def _unknown(connection: Connection, text: str) -> UnknownNameError:
    ids = experiment_ids(connection)
    begin = "" if ids else "; `cotrail experiment run FILE` begins one"
    return UnknownNameError(unknown("experiment", text, ids) + begin)
