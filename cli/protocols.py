"""What an experiment's protocol decides: how it is carried out, and what is reported of it."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from cli.experiment_inputs import Inputs
from cli.experiment_report import Report
from cli.experiment_results import read_results
from cli.ircot_report import ircot_report
from cli.ircot_schedule import IRCoTSchedule
from cli.request import read_file
from cli.rethinking_report import read_trials, rethinking_report
from cli.rethinking_schedule import RethinkingSchedule
from cli.schedule import Schedule
from configuration.settings import settings
from cotrail.engines.language_models.splitting import pinned
from cotrail.errors import InputError
from cotrail.evaluation.experiments.ircot.experiment import IRCoTExperiment
from cotrail.evaluation.experiments.protocols import AnyExperiment, experiment_of
from models.queries.experiments import read_experiment


def read_experiment_file(path: Path) -> AnyExperiment:
    """The experiment of a TOML file; InputError says what is wrong with it."""
    try:
        experiment = experiment_of(read_file(path))
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {str(error).replace('`$.', '`')}; correct it") from error
    return replace(
        experiment,
        models=experiment.models or (settings().model,),
        settings={system: _versioned(given) for system, given in experiment.settings.items()},
    )


def _versioned(given: dict[str, Any]) -> dict[str, Any]:
    """A system's settings with the version of the splitter that is installed, so that the plan has it."""
    splitter = given.get("splitter")
    return given | {"splitter": pinned(splitter)} if isinstance(splitter, str) else given


def schedule_of(experiment: AnyExperiment, folder: Path) -> Schedule[Any]:
    """How the experiment is carried out; the paths that it names are relative to `folder`."""
    if isinstance(experiment, IRCoTExperiment):
        return IRCoTSchedule(Inputs(experiment, folder))
    return RethinkingSchedule(experiment, folder)


def read_report(connection: Connection, name: str) -> Report:
    """What came out of the experiment so far."""
    experiment = experiment_of(read_experiment(connection, name).plan["experiment"])
    if isinstance(experiment, IRCoTExperiment):
        return ircot_report(read_results(connection, name))
    return rethinking_report(read_trials(connection, experiment))
