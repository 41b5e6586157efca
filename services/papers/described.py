"""An experiment as it was begun, and how far its runs are."""

from typing import Any

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.models.queries.experiments import read_experiment
from cotrail.models.queries.experiments import resolve_experiment as resolve_experiment
from cotrail.models.queries.progress import read_standings


class CellRun(Struct, frozen=True, kw_only=True):
    """The run of a cell, and the number of its questions by status."""

    run: str
    questions: dict[str, int]


class DescribedExperiment(Struct, frozen=True, kw_only=True):
    """An experiment; plan: all that decides its results, every default spelled out; runs: by cell."""

    experiment: str
    plan: dict[str, Any]
    runs: dict[str, CellRun]


def describe_experiment(connection: Connection, name: str) -> DescribedExperiment:
    """The experiment with its runs, in the order of their submission; name: its id, or `latest`."""
    record = read_experiment(connection, resolve_experiment(connection, name))
    standings = read_standings(connection, record.id)
    runs = {cell: CellRun(run=run, questions=standings[run]) for cell, run in record.runs.items()}
    return DescribedExperiment(experiment=record.id, plan=record.plan, runs=runs)
