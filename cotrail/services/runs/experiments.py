"""Experiments: their files, the job that conducts one, and how far it is."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.common.printable_text import cut
from cotrail.common.refusals import refusal
from cotrail.configuration.settings import settings
from cotrail.engines.language_models.sentence_splitters import pinned
from cotrail.errors import InputError
from cotrail.evaluation.experiments.paper import Experiment
from cotrail.evaluation.experiments.registry import DEFAULT, experiment_of, file_type
from cotrail.models.commands.administering import queue_job
from cotrail.models.queries.experiments import experiment_ids, read_experiment, resolve_experiment
from cotrail.models.queries.progress import read_standings
from cotrail.models.records.idempotency import JobRecord
from cotrail.services.actor import Scope
from cotrail.services.library.named_files import ExperimentFiles
from cotrail.services.library.uploaded_files import UploadedPaths, reference_of
from cotrail.services.operations.operation import operation
from cotrail.services.runs.checking import check_splitter
from cotrail.services.runs.jobs import Job, queued, queued_before
from cotrail.services.runs.requests import read_toml_file
from cotrail.services.store import reading


def read_experiment_file(path: Path) -> Experiment:
    """The experiment of a TOML file; InputError says what is wrong with it."""
    return parse_experiment(read_toml_file(path), str(path))


def parse_experiment(keys: Mapping[str, Any], where: str) -> Experiment:
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


# Experiments that are sent elsewhere: what their file says, with the files that it names in the same folder.

MANY = "{M}"
"""What IRCoT's demonstration files have in their names in place of a number."""

OUTSIDE = "outside"
"""The folder in which files stand that the experiment's file names above its own folder."""


class ExperimentRequest(ExperimentFiles, Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request for an experiment: what its file says, and the files and folders that it names, by their names there.

    reuse: whether its runs adopt steps from one another.
    """

    experiment: dict[str, Any]
    reuse: bool = True


def read_to_send(path: Path, *, reuse: bool) -> ExperimentRequest:
    """An experiment's file with the files and folders that it names; InputError where it can't be read."""
    described = read_toml_file(path)
    named = {text: inside for text in _texts(described) if (inside := _inside(path.parent, text)) is not None}
    files = {name: str(place) for text, inside in named.items() for name, place in _found(path.parent, text, inside)}
    return ExperimentRequest(experiment=_renamed(described, named), files=files, reuse=reuse)


def check_stays_inside(described: Mapping[str, Any]) -> None:
    """Raises InputError where an experiment that was sent names a path outside of its folder."""
    for text in _texts(described):
        path = PurePosixPath(text)
        if path.is_absolute() or ".." in path.parts or text.startswith("~"):
            raise InputError(f"{cut(text, 200)!r} leads out of the experiment's folder: name files next to each other")


def _inside(folder: Path, text: str) -> str | None:
    """The name in the experiment's folder of a file or folder that a value names; None where it names none."""
    if not text or "\n" in text or not any(True for _ in _places(folder, text)):
        return None
    relative = os.path.relpath(folder / text, folder)
    parts = PurePosixPath(relative).parts
    above = parts.count("..")
    return str(PurePosixPath(*([f"{OUTSIDE}{above}"] if above else []), *parts[above:]))


def _places(folder: Path, text: str) -> Iterator[Path]:
    """The files or folders that a value names."""
    try:
        if MANY in text:
            place = folder / text
            yield from sorted(place.parent.glob(place.name.replace(MANY, "*")))
        elif (folder / text).exists():
            yield folder / text
    except OSError:  # a text that is too long for a name, say
        return


def _found(folder: Path, text: str, inside: str) -> Iterator[tuple[str, Path]]:
    for place in _places(folder, text):
        yield (inside if MANY not in text else str(PurePosixPath(inside).with_name(place.name))), place


def _texts(value: Any) -> Iterator[str]:
    """The texts of the values of a tree."""
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ():
        yield from _texts(each)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, Mapping):
        return {key: _renamed(each, names) for key, each in value.items()}
    return [_renamed(each, names) for each in value] if isinstance(value, list) else value


class ExperimentProgress(Struct, frozen=True, kw_only=True):
    """Progress of an experiment.

    runs: those that are submitted; planned: all; done: those with no open questions, or stopped by one cause.
    stuck: the ids of done runs with blocked questions, or with such as were never asked; nothing is chosen by their
        scores.
    """

    planned: int
    runs: int
    done: int
    questions: int
    answered: int
    steps: int
    adopted: int
    stuck: tuple[str, ...]

    @property
    def over(self) -> bool:
        """Return whether nothing more will happen without a person's help."""
        return self.done == self.runs and (self.runs == self.planned or bool(self.stuck))


class CellRun(Struct, frozen=True, kw_only=True):
    """The run of a cell, and the number of its questions by status."""

    run: str
    questions: dict[str, int]


class DescribedExperiment(Struct, frozen=True, kw_only=True):
    """An experiment; plan: all that decides its results, every default spelled out; runs: by cell."""

    experiment: str
    plan: dict[str, Any]
    runs: dict[str, CellRun]


@operation("experiments.show", "GET", "/experiments/{experiment}", Scope.READ)
def show_experiment(experiment: str) -> DescribedExperiment:
    """Show an experiment's plan and its runs; `latest` is the newest."""
    # The runs are in the order of their submission.
    with reading() as connection:
        record = read_experiment(connection, resolve_experiment(connection, experiment))
        standings = read_standings(connection, record.id)
        runs = {cell: CellRun(run=run, questions=standings[run]) for cell, run in record.runs.items()}
        return DescribedExperiment(experiment=record.id, plan=record.plan, runs=runs)


# Experiments as jobs: the request for one, and what it comes to.

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
    experiment = parse_experiment(request.experiment, FILE)
    stored = replace(request, files={name: reference_of(path) for name, path in request.files.items()})
    UploadedPaths().expanded(stored.files)
    asked: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(stored))
    return queue_job(connection, EXPERIMENT, {"name": experiment.name, **asked})


@operation("experiments.conduct", "POST", "/experiments", Scope.SUBMIT, status=202, replayed=queued_before)
def conduct_experiment(request: ExperimentRequest) -> Job:
    """Queue an experiment to be conducted until its runs are done; one that was begun continues.

    What it came to, and meanwhile how far it is, is the job's result.
    """
    return queued(lambda connection: queue_experiment(connection, request))


@operation("experiments.index", "GET", "/experiments", Scope.READ)
def list_experiments() -> tuple[str, ...]:
    """List the experiments by name, the newest first."""
    with reading() as connection:
        return tuple(experiment_ids(connection))
