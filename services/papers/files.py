"""Experiment files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from cotrail.common.refusals import refusal
from cotrail.configuration.settings import settings
from cotrail.engines.language_models.sentence_splitters import pinned
from cotrail.errors import InputError
from cotrail.evaluation.experiments.experiment_file import Experiment
from cotrail.evaluation.experiments.registry import DEFAULT, experiment_of, file_type
from cotrail.services.runs.requests import read_toml_file
from cotrail.services.runs.runnable import check_splitter


def read_experiment_file(path: Path) -> Experiment:
    """The experiment of a TOML file; InputError says what is wrong with it."""
    return read_experiment(read_toml_file(path), str(path))


def read_experiment(keys: Mapping[str, Any], where: str) -> Experiment:
    """The experiment that a file with these keys describes; where: what errors call the file."""
    described = {"protocol": DEFAULT, **keys}
    try:
        experiment = experiment_of(described)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {refusal(error, file_type(described), described)}; correct it") from error
    return replace(
        experiment,
        models=experiment.models or (settings().model,),
        settings={system: _versioned(given) for system, given in experiment.settings.items()},
    )


def _versioned(settings: dict[str, Any]) -> dict[str, Any]:
    """A system's settings with the version of the splitter that is installed, so that the plan has it."""
    splitter = settings.get("splitter")
    if not isinstance(splitter, str):
        return settings
    versioned = settings | {"splitter": pinned(splitter)}
    check_splitter(versioned)
    return versioned
