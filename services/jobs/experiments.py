"""Experiments as jobs: the request for one, and what it comes to."""

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.models.commands.jobs import queue_job
from cotrail.models.records.jobs import JobRecord
from cotrail.services.data.file_references import check_relative
from cotrail.services.data.uploaded_files import reference_of
from cotrail.services.papers.files import read_experiment
from cotrail.services.papers.progress import ExperimentProgress
from cotrail.services.papers.sent_files import ExperimentRequest, check_stays_inside

EXPERIMENT = "experiment"

FILE = "the experiment"
"""What errors call the file of one that was sent."""


class Conducted(Struct, frozen=True, kw_only=True):
    """An experiment that was conducted, as far as it got; notes: what a person should know of it."""

    experiment: str
    progress: ExperimentProgress
    notes: tuple[str, ...] = ()


def queue_experiment(connection: Connection, request: ExperimentRequest) -> JobRecord:
    """Queue an experiment to be conducted, or to be continued; raises InputError where its file can't be used."""
    check_stays_inside(request.experiment)
    for name in request.files:
        check_relative(name)
    experiment = read_experiment(request.experiment, FILE)
    stored = replace(request, files={name: reference_of(path) for name, path in request.files.items()})
    asked: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(stored))
    return queue_job(connection, EXPERIMENT, {"name": experiment.name, **asked})
