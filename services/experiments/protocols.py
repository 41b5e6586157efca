"""Experiments by their papers' protocols: an experiment's file, and the schedule that carries it out."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from cotrail.common.refusals import refusal
from cotrail.configuration.settings import settings
from cotrail.engines.language_models.sentence_splitters import pinned
from cotrail.errors import InputError
from cotrail.evaluation.experiments.ircot.experiment import IRCoTExperiment
from cotrail.evaluation.experiments.protocols import DEFAULT, AnyExperiment, experiment_of
from cotrail.evaluation.experiments.rethinking.experiment import RethinkingExperiment
from cotrail.evaluation.experiments.searchain.experiment import SearChainExperiment
from cotrail.services.experiments.ircot import IRCoTSchedule
from cotrail.services.experiments.rethinking import RethinkingSchedule
from cotrail.services.experiments.schedule import Schedule
from cotrail.services.experiments.searchain import SearChainSchedule
from cotrail.services.requests import read_toml_file
from cotrail.services.runnable import check_splitter


def read_experiment_file(path: Path) -> AnyExperiment:
    """The experiment of a TOML file; InputError says what is wrong with it."""
    described = {"protocol": DEFAULT, **read_toml_file(path)}
    try:
        experiment = experiment_of(described)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {refusal(error, AnyExperiment, described)}; correct it") from error
    return replace(
        experiment,
        models=experiment.models or (settings().model,),
        settings={system: _versioned(given) for system, given in experiment.settings.items()},
    )


def schedule_of(experiment: AnyExperiment, folder: Path) -> Schedule[Any]:
    """The schedule of the experiment's protocol; the paths that it names are relative to `folder`."""
    match experiment:
        case IRCoTExperiment():
            return IRCoTSchedule(experiment, folder)
        case RethinkingExperiment():
            return RethinkingSchedule(experiment, folder)
        case SearChainExperiment():
            return SearChainSchedule(experiment, folder)


def _versioned(given: dict[str, Any]) -> dict[str, Any]:
    """A system's settings with the version of the splitter that is installed, so that the plan has it."""
    splitter = given.get("splitter")
    if not isinstance(splitter, str):
        return given
    versioned = given | {"splitter": pinned(splitter)}
    check_splitter(versioned)
    return versioned
