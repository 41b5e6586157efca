"""Schedule of an experiment: which runs it has, given what is recorded, and what each of them is."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from cotrail.core.demonstrations import AnswerForm
from cotrail.core.repeats import Repeat, provenance_of
from cotrail.data.demonstrations.sets import RELEASED
from cotrail.errors import InputError
from cotrail.evaluation.experiments.experiment_file import Experiment
from cotrail.evaluation.experiments.registry import paper_of
from cotrail.evaluation.experiments.stages import ExperimentCell, Stage
from cotrail.evaluation.metrics.scores import QuestionScores
from cotrail.models.commands.new_runs import Submission
from cotrail.services.access.corpora import seen_corpora
from cotrail.services.runs.composing import check_evidence, compose
from cotrail.services.runs.prepared_run import PreparedRun
from cotrail.services.runs.provenance import file_record
from cotrail.services.runs.repeats import are_alike
from cotrail.services.runs.requests import PATH_FIELDS, RunRequest, make_request
from cotrail.services.runs.shots import complete_shots, read_words
from cotrail.services.runs.system_settings import ConfiguredSystem, check_answers, configure
from cotrail.systems.registry import find_system
from cotrail.systems.spec import Needs


class RunsSoFar(Protocol):
    """The runs of an experiment as they stand."""

    @property
    def ids(self) -> Mapping[str, str]:
        """Their ids by their names in the experiment."""

    def is_complete(self, run: str) -> bool:
        """Return whether every question of the run has ended, so that it can be scored."""

    def scores(self, run: str) -> Sequence[QuestionScores]:
        """The scores of the run's questions."""


class Schedule:
    """The runs of an experiment; paths that its file names are relative to `folder`.

    cells: all of them, with the first of what is chosen from in the place of what isn't chosen yet.
    Raises InputError and its kinds for what can't be used.
    """

    def __init__(self, experiment: Experiment, folder: Path) -> None:
        self.name = experiment.name
        self._experiment = experiment
        self._folder = folder
        self._paper = paper_of(experiment.protocol)
        self._keys = partial(self._paper.request, experiment)
        self.inputs = self._paper.inputs(experiment, folder, self._keys, seen_corpora().open)
        self._stages: Sequence[Stage[Any]] = tuple(map(self._selected, self._paper.stages(experiment)))
        self.cells: tuple[ExperimentCell, ...] = tuple(cell for stage in self._stages for cell in stage.planned)
        # The plan, the checks and the submission prepare the same runs, whose files are large.
        self._prepared: dict[str, PreparedRun] = {}
        self._chosen: dict[int, ExperimentCell] = {}

    def plan(self) -> dict[str, Any]:
        """Everything that decides the experiment's results; an experiment that is continued must have the same.

        Under `experiment` it has what the file describes, under `models` the models' identities by name.
        """
        submissions = [self.prepare(cell).submission for cell in self.cells]
        paths = (str(keys[field]) for keys in map(self._keys, self.cells) for field in PATH_FIELDS if keys.get(field))
        files = dict.fromkeys((*self.inputs.files(), *(name for name in paths if name != RELEASED)))
        corpora = {name: self.inputs.corpus(name).revision for name in self.inputs.corpora()}
        searched = dict(pin for each in submissions for pin in each.binding.corpora.items())
        return {
            "experiment": msgspec.to_builtins(self._experiment),
            "files": {name: file_record(self._folder / name)["sha256"] for name in files},
            "corpora": corpora | searched,
            "models": {each.model_name: each.binding.model for each in submissions},
            **{part: value for part, value in _pinned(submissions).items() if part in self._paper.pinned},
        }

    def check(self) -> Sequence[str]:
        """Prepares all that may be run, so that unusable inputs show first; returns notes for the user."""
        if not self.cells:
            raise InputError(
                f"no dataset of the experiment {self.name} has a part in what its file asks for; name others"
            )
        notes = [note for cell in self.cells for note in self.prepare(cell).notes]
        return list(dict.fromkeys((*notes, *self.inputs.notes())))

    def due(self, recorded: RunsSoFar) -> Sequence[ExperimentCell]:
        """The runs that can be submitted now and aren't yet."""
        ready = (cell for number in range(len(self._stages)) for cell in self._ready(recorded, number))
        return [cell for cell in ready if cell.name not in recorded.ids]

    def prepare(self, cell: ExperimentCell) -> PreparedRun:
        """A run, ready to be submitted."""
        if cell.name not in self._prepared:
            self._prepared[cell.name] = self._prepare(cell)
        return self._prepared[cell.name]

    def _ready(self, recorded: RunsSoFar, number: int) -> Iterator[ExperimentCell]:
        """The runs of a stage that wait for no others."""
        stage = self._stages[number]
        yield from stage.cells
        if stage.choose is None:
            return
        if number not in self._chosen:
            runs = {cell: recorded.ids[cell.name] for cell in stage.cells if cell.name in recorded.ids}
            if len(runs) < len(stage.cells) or not all(map(recorded.is_complete, runs.values())):
                return
            self._chosen[number] = stage.choose({cell: recorded.scores(run) for cell, run in runs.items()})
        yield from stage.then(self._chosen[number])

    def _selected(self, stage: Stage[Any]) -> Stage[Any]:
        """The stage with the runs that there are by what they need."""
        if self._paper.select is None:
            return stage
        needs = {cell: self._configured(cell)[1].needs for cell in stage.cells}
        return replace(stage, cells=tuple(self._paper.select(self._experiment, needs)))

    def _configured(self, cell: ExperimentCell) -> tuple[RunRequest, ConfiguredSystem]:
        request = make_request(self._keys(cell))
        spec = find_system(request.system)
        check_answers(spec)
        return request, configure(spec, request, instructed=self.inputs.instructed(cell))

    def _prepare(self, cell: ExperimentCell) -> PreparedRun:
        (request, system), inputs = self._configured(cell), self.inputs
        repeat: Repeat | None = self._paper.repeat(self._experiment, cell)
        if request.repeat > 1:
            raise InputError("a run of an experiment isn't repeated by itself: `repeat` stands at the file's beginning")
        if system.needs.corpus and not request.all_corpora:
            raise InputError(f"the dataset {request.dataset} needs a `corpus`, which {cell.name} searches; name it")
        questions = inputs.questions(cell)
        if system.needs.evidence:
            check_evidence(questions, self._folder / request.questions)
        words = read_words(str(self._folder / request.prompt), system) if request.prompt and system.needs.words else {}
        demonstrations = {form: inputs.shown(cell, form) for form in sorted(system.needs.forms)}
        composed = compose(
            _with_used_engines(request, system.needs),
            system,
            corpora={
                seen_corpora().stored(name): inputs.corpus(name).revision
                for name in request.all_corpora
                if system.needs.corpus
            },
            shots=complete_shots(system.needs, demonstrations, inputs.shown(cell, AnswerForm.TITLES)) | words,
            provenance={"cell": msgspec.to_builtins(cell), **provenance_of(repeat)},
        )
        alike = repeat is not None and are_alike(composed, system.needs)
        return PreparedRun(submission=composed, questions=questions, alike=alike)


def _with_used_engines(request: RunRequest, needs: Needs) -> RunRequest:
    """The request without the engines that its run has no use for: a file names them for all of its runs."""
    used = {role.name for role in needs.engines}
    return replace(request, engines={role: name for role, name in request.engines.items() if role in used})


def _pinned(submissions: Sequence[Submission]) -> dict[str, Any]:
    """What runs pin besides corpora and language models, by the names that plans have for it."""
    bindings = [submission.binding for submission in submissions]
    pins = {role: identity for each in bindings for role, identity in each.pins.items()}
    return {
        "embedders": sorted({each.embedder for each in bindings if each.embedder}),
        "entailers": sorted({each.entailer for each in bindings if each.entailer}),
        "knowledge": pins,
        "pins": pins,
    }
