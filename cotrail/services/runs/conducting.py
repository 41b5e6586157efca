"""Conduct of an experiment: each run is submitted as soon as what it depends on is known, until all are done.

Each round decides everything again from what the store holds, so a process may end at any point and another take over.
First: the runs of an experiment as they are read from the store, for that and for the tables of papers.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, Engine

from cotrail.core.actions.generate import Prompted
from cotrail.core.demonstrations import AnswerForm
from cotrail.core.repeats import Repeat, provenance_of, read_repeat
from cotrail.core.results import Generated
from cotrail.data.demonstrations.sets import RELEASED
from cotrail.errors import InputError
from cotrail.evaluation.experiments.costs import ModelCall, QuestionCost, RecordedQuestion, RecordedRun
from cotrail.evaluation.experiments.paper import Experiment, ExperimentCell, Stage
from cotrail.evaluation.experiments.registry import paper_of
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.evaluation.metrics.question_scores import scorer
from cotrail.evaluation.metrics.stop_rules import until
from cotrail.models.commands.submission import Submission, open_experiment, submit
from cotrail.models.queries.annotations import chain_of, read_annotations
from cotrail.models.queries.experiments import read_experiment
from cotrail.models.queries.outcomes import ASKED
from cotrail.models.queries.progress import count_steps, is_complete, read_progress, read_standings
from cotrail.models.queries.runs import RunRecord, read_run
from cotrail.models.queries.traces import read_questions
from cotrail.models.records.budgets import stopped_runs
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.access.grants import seen_corpora
from cotrail.services.library.named_files import PATH_FIELDS
from cotrail.services.library.uploaded_files import fill_folder
from cotrail.services.runs.checking import checked
from cotrail.services.runs.configuring import ConfiguredSystem, configure, find_answering
from cotrail.services.runs.experiments import FILE, Conducted, ExperimentProgress, ExperimentRequest, parse_experiment
from cotrail.services.runs.jobs import Work
from cotrail.services.runs.pinning import are_alike, file_record, pin, with_plan
from cotrail.services.runs.requests import RunRequest, make_request
from cotrail.services.runs.resolving import complete_shots, read_words, resolve_engines
from cotrail.services.runs.scores import question_costs, run_cost, scores_by_question
from cotrail.services.runs.submission import PreparedRun
from cotrail.services.store import reading_from
from cotrail.systems.registry import find_system, recorded_system
from cotrail.systems.spec import SystemSpec


class StoredRuns:
    """The runs of an experiment in the store; ids: by their names in the experiment."""

    def __init__(self, connection: Connection, experiment: str) -> None:
        self._connection = connection
        self._experiment = experiment
        self.ids = read_experiment(connection, experiment).runs

    def is_complete(self, run: str) -> bool:
        """Return whether every question of the run has ended with an answer or a failure, so that it can be scored."""
        return is_complete(self._standings[run])

    def scores(self, run: str) -> tuple[QuestionScores, ...]:
        record = read_run(self._connection, run)
        return tuple(each.scores for each in scores_by_question(self._connection, record).values())

    @cached_property
    def _standings(self) -> Mapping[str, Mapping[str, int]]:
        return read_standings(self._connection, self._experiment)


def read_results(connection: Connection, experiment: Experiment, runs: dict[str, str]) -> list[Any]:
    """What the experiment's tables need of its runs as they stand, in the order of its file; runs: ids by name.

    Runs that were cancelled before they asked anything have no results.
    """
    paper = paper_of(experiment.protocol)
    cells = {cell.name: cell for stage in paper.stages(experiment) for cell in stage.possible}
    recorded = ((cell, recorded_run(connection, runs[name])) for name, cell in cells.items() if name in runs)
    return [paper.read(cell, run) for cell, run in recorded if run.unasked < run.size]


def recorded_run(connection: Connection, run_id: str) -> RecordedRun:
    """A run as it stands."""
    record = read_run(connection, run_id)
    spec = find_system(record.system, record.system_version)
    progress = read_progress(connection, run_id)
    return RecordedRun(
        id=run_id,
        system=record.system,
        settings=msgspec.convert(record.settings, spec.settings),
        dataset=record.dataset,
        model=record.model_name,
        corpus=", ".join(record.corpora) or None,
        questions=_questions(connection, record, spec),
        calls=partial(_calls, connection, run_id),
        annotations=read_annotations(connection, run_id),
        finished=progress.questions[QuestionStatus.FINISHED],
        size=progress.total,
        unasked=progress.questions[QuestionStatus.CANCELLED],
        until=until(record.provenance),
        cost=run_cost(connection, run_id),
        ends=progress.ends,
        pins=record.knowledge,
    )


def _questions(connection: Connection, record: RunRecord, spec: SystemSpec) -> Iterator[RecordedQuestion]:
    scores, costs = scorer(record, recorded_system), question_costs(connection, record.id)
    for question in read_questions(connection, record.id):
        yield RecordedQuestion(
            key=question.key,
            text=question.text,
            answers=question.answers,
            answer=question.answer,
            kinds=question.kinds,
            scores=scores(question),
            details=spec.details_in(question.details),
            chain=chain_of(record, question) if "reading" in record.settings else question.sentences,
            gold=question.gold,
            paragraphs=tuple(hit.paragraph for step in question.steps for hit in step.hits),
            cost=costs.get(question.key, QuestionCost()),
            ended=question.status in ASKED,
            asked=question.status != QuestionStatus.CANCELLED,
        )


def _calls(connection: Connection, run_id: str, kind: str) -> Iterator[tuple[str, tuple[ModelCall, ...]]]:
    """The key of each question with finished steps of a kind with prompts, with these in order."""
    for question in read_questions(connection, run_id):
        calls = tuple(
            ModelCall(prompt=step.action.prompt, written=step.result.raw)
            for step in question.steps
            if step.kind == kind and isinstance(step.action, Prompted) and isinstance(step.result, Generated)
        )
        if calls:
            yield question.key, calls


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
        instructed = self.inputs.instructed(cell)
        return request, configure(find_answering(request.system), request, instructed=instructed)

    def _prepare(self, cell: ExperimentCell) -> PreparedRun:
        (request, system), inputs = self._configured(cell), self.inputs
        repeat: Repeat | None = self._paper.repeat(self._experiment, cell)
        if request.repeat > 1:
            raise InputError("a run of an experiment isn't repeated by itself: `repeat` stands at the file's beginning")
        if system.needs.corpus and not request.all_corpora:
            raise InputError(f"the dataset {request.dataset} needs a `corpus`, which {cell.name} searches; name it")
        # Without the engines that the run has no use for: a file names them for all of its runs.
        used = {role.name for role in system.needs.engines}
        engines = {role: name for role, name in request.engines.items() if role in used}
        words = read_words(str(self._folder / request.prompt), system) if request.prompt and system.needs.words else {}
        demonstrations = {form: inputs.shown(cell, form) for form in sorted(system.needs.forms)}
        resolved = resolve_engines(
            replace(request, engines=engines),
            system,
            corpora={
                seen_corpora().stored(name): inputs.corpus(name).revision
                for name in request.all_corpora
                if system.needs.corpus
            },
            shots=complete_shots(system.needs, demonstrations, inputs.shown(cell, AnswerForm.TITLES)) | words,
            questions=inputs.questions(cell),
        )
        pinned = pin(checked(resolved), {"cell": msgspec.to_builtins(cell), **provenance_of(repeat)})
        alike = repeat is not None and are_alike(pinned, system.needs)
        return PreparedRun(submission=pinned, questions=resolved.questions, alike=alike)


def _pinned(submissions: Sequence[Submission]) -> dict[str, Any]:
    """What runs pin in addition to corpora and language models, by the names that plans have for it."""
    bindings = [submission.binding for submission in submissions]
    pins = {role: identity for each in bindings for role, identity in each.pins.items()}
    return {
        "embedders": sorted({each.embedder for each in bindings if each.embedder}),
        "entailers": sorted({each.entailer for each in bindings if each.entailer}),
        "knowledge": pins,
        "pins": pins,
    }


POLL_SECONDS = 1.0


def begin(engine: Engine, schedule: Schedule, plan: dict[str, Any], *, reuse: bool) -> "Conductor":
    """Records an experiment with its schedule's plan, or continues one; InputError where that has another plan.

    reuse: whether its runs adopt steps from one another.
    """
    return Conductor(engine, schedule, open_experiment(engine, schedule.name, plan)["models"], reuse=reuse)


class Conductor:
    """One experiment under way.

    pinned: the models' identities by name, as when it was begun; reuse: whether its runs adopt steps from one another.
    """

    def __init__(self, engine: Engine, schedule: Schedule, pinned: Mapping[str, str], *, reuse: bool) -> None:
        self._engine = engine
        self._schedule = schedule
        self._pinned = pinned
        self._reuse = reuse

    def conduct(self, show: Callable[[ExperimentProgress], None]) -> ExperimentProgress:
        """Submits runs until every run is done or none can continue; shows each round's progress, returns the last."""
        while True:
            self._submit_due()
            progress = self.progress()
            show(progress)
            if progress.over:
                return progress
            time.sleep(POLL_SECONDS)

    def progress(self) -> ExperimentProgress:
        """The experiment's progress as the store has it now."""
        with reading_from(self._engine) as connection:
            standings = read_standings(connection, self._schedule.name)
            stopped = stopped_runs(connection)
            steps, adopted = count_steps(connection, self._schedule.name)
        ended = {run: counts for run, counts in standings.items() if run in stopped or not counts[QuestionStatus.OPEN]}
        return ExperimentProgress(
            planned=len(self._schedule.cells),
            runs=len(standings),
            done=len(ended),
            questions=sum(sum(counts.values()) for counts in standings.values()),
            answered=sum(sum(counts.values()) - counts[QuestionStatus.OPEN] for counts in standings.values()),
            steps=steps,
            adopted=adopted,
            stuck=tuple(run for run, counts in ended.items() if not is_complete(counts)),
        )

    def _submit_due(self) -> None:
        with reading_from(self._engine) as connection:
            due = self._schedule.due(StoredRuns(connection, self._schedule.name))
        for cell in due:
            prepared = self._schedule.prepare(cell)
            submission = prepared.submission
            # The model as the experiment pinned it, even if its file has another name now.
            binding = replace(submission.binding, model=self._pinned[submission.model_name])
            # Another conductor may submit this cell too; the store keeps the first run of a cell.
            # Repeats adopt nothing: each is to be a sample of its own, whatever the steps depend on.
            reuse = self._reuse and read_repeat(submission.provenance) is None
            member = {"experiment": self._schedule.name, "cell": cell.name, "reuse": reuse, "binding": binding}
            tags = dict.fromkeys((*submission.labels.tags, self._schedule.name))
            labels = replace(submission.labels, tags=tuple(tags))
            planned = with_plan(replace(submission, **member, labels=labels), prepared.questions)
            submit(self._engine, planned, prepared.questions, find_system)


def carry_out(work: Work) -> Conducted:
    """Conduct the experiment of a job's request; continues what another process began."""
    request = msgspec.convert({key: value for key, value in work.request.items() if key != "name"}, ExperimentRequest)
    work.folder.mkdir(parents=True, exist_ok=True)
    fill_folder(work.folder, request.files)
    schedule = Schedule(parse_experiment(request.experiment, FILE), work.folder)
    plan = schedule.plan()
    notes = tuple(schedule.check())

    def conducted(progress: ExperimentProgress) -> Conducted:
        return Conducted(experiment=schedule.name, progress=progress, notes=notes)

    def show(progress: ExperimentProgress) -> None:
        work.progress(progress.answered, msgspec.to_builtins(conducted(progress)))

    return conducted(begin(work.engine, schedule, plan, reuse=request.reuse).conduct(show))
