"""IRCoT's protocol: K and M are searched on development questions, and then tried on the test questions (section 4.1).

K is the number of paragraphs that a search retrieves, M that of the distractors in each demonstration.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from cotrail.common.humanize import count
from cotrail.configuration.settings import settings
from cotrail.core.demonstrations import AnswerForm
from cotrail.engines.language_models.catalogue import check_profile, find_model, identity
from cotrail.evaluation.experiments.ircot.cells import Cell, Line
from cotrail.evaluation.experiments.ircot.experiment import IRCoTExperiment
from cotrail.evaluation.experiments.ircot.protocol import IRCoTProtocol, choose
from cotrail.services.composing import compose
from cotrail.services.experiments.ircot_demonstrations import DemonstrationSets
from cotrail.services.experiments.ircot_inputs import Inputs
from cotrail.services.experiments.schedule import RecordedRuns
from cotrail.services.prepared_run import PreparedRun
from cotrail.services.provenance import file_record
from cotrail.services.requests import RunRequest
from cotrail.services.shots import complete_shots
from cotrail.services.system_settings import configure
from cotrail.systems.registry import SYSTEMS, find_system


class IRCoTSchedule:
    """See `Schedule`; paths are relative to `folder`."""

    def __init__(self, experiment: IRCoTExperiment, folder: Path) -> None:
        self.experiment = experiment
        self.inputs = Inputs(experiment, folder)
        self._protocol = IRCoTProtocol(experiment, SYSTEMS)
        self._folder = folder
        self._demonstrations = DemonstrationSets(experiment, folder)
        self._chosen: dict[Line, Cell] = {}

    @property
    def name(self) -> str:
        """See `Schedule`."""
        return self.experiment.name

    @property
    def planned(self) -> int:
        """See `Schedule`."""
        return len(self._cells())

    def plan(self) -> dict[str, Any]:
        """See `Schedule`."""
        names = dict.fromkeys((*self.inputs.files(), *self._demonstrations.files()))
        datasets = self.experiment.datasets
        return {
            "experiment": msgspec.to_builtins(self.experiment),
            "files": {name: file_record(self._folder / name)["sha256"] for name in names},
            "corpora": {each.corpus: self.inputs.corpus(name).revision for name, each in datasets.items()},
            "models": {name: self._model(name) for name in self.experiment.model_names},
        }

    def check(self) -> Sequence[str]:
        """See `Schedule`; the notes name corpora that lack gold paragraphs, which no system can then find."""
        # The search runs name the files of every M, so a placeholder for the chosen K and M hides no missing file.
        for cell in self._cells():
            self.prepare(cell)
        return [note for dataset in self.experiment.datasets for note in self._missing(dataset)]

    def due(self, recorded: RecordedRuns) -> Sequence[Cell]:
        """See `Schedule`."""
        ready = (cell for line in self._protocol.lines() for cell in self._ready(recorded, line))
        return [cell for cell in ready if cell.name not in recorded.ids]

    def prepare(self, cell: Cell) -> PreparedRun:
        """See `Schedule`."""
        dataset = cell.line.dataset
        instructed = bool(self._demonstrations.of(cell, AnswerForm.COT).instruction)
        request = self._request(cell)
        system = configure(find_system(cell.line.system), request, instructed=instructed)
        shown = {form: self._demonstrations.of(cell, form) for form in sorted(system.needs.forms)}
        composed = compose(
            request,
            system,
            corpora={name: self.inputs.corpus(dataset).revision for name in request.all_corpora if system.needs.corpus},
            shots=complete_shots(system.needs, shown, self._demonstrations.of(cell, AnswerForm.TITLES)),
            provenance={"cell": msgspec.to_builtins(cell)},
        )
        return PreparedRun(submission=composed, questions=self.inputs.questions(dataset, cell.stage))

    def _cells(self) -> Sequence[Cell]:
        """All runs, with any K and M for the test questions: these are only known once they are chosen."""
        return [
            cell
            for line in self._protocol.lines()
            for searched in [self._protocol.cells_to_search(line)]
            for cell in (*searched, *self._protocol.cells_to_test(line, searched[0] if searched else None))
        ]

    def _missing(self, dataset: str) -> Sequence[str]:
        gold, missing = self.inputs.missing_gold(dataset)
        if not missing:
            return ()
        return (
            f"{dataset}: {missing:,} of {count(gold, 'gold paragraph')} aren't in the corpus "
            f"{self.experiment.datasets[dataset].corpus}; paragraph recall can't reach 1. "
            "`cotrail data build` makes a corpus that has them.",
        )

    def _ready(self, recorded: RecordedRuns, line: Line) -> Sequence[Cell]:
        searched = self._protocol.cells_to_search(line)
        if not searched:
            return self._protocol.cells_to_test(line, None)
        if line not in self._chosen and not self._choose(recorded, line, searched):
            return searched
        return (*searched, *self._protocol.cells_to_test(line, self._chosen[line]))

    def _choose(self, recorded: RecordedRuns, line: Line, searched: Sequence[Cell]) -> bool:
        """Chooses K and M, if all search runs of the line are done; returns whether they are."""
        runs = {cell: recorded.ids[cell.name] for cell in searched if cell.name in recorded.ids}
        if len(runs) < len(searched) or not all(map(recorded.is_complete, runs.values())):
            return False
        scores = {cell: recorded.scores(run) for cell, run in runs.items()}
        self._chosen[line] = choose(scores, self.experiment.rules)
        return True

    def _request(self, cell: Cell) -> RunRequest:
        line, experiment = cell.line, self.experiment
        files = experiment.datasets[line.dataset]
        return RunRequest(
            system=line.system,
            dataset=experiment.published_as(line.dataset),
            questions=files.questions or "",
            official=files.official,
            reader=line.reader,
            rules=experiment.rules,
            corpus=files.corpus,
            retrieval_count=cell.retrieval_count,
            model=line.model,
            seed=experiment.seed,
            temperature=experiment.temperature,
            profile=experiment.profile,
            settings=experiment.settings.get(line.system, {}),
        )

    def _model(self, name: str) -> str:
        model = find_model(settings().catalogue_path, name)
        check_profile(model, self.experiment.profile)
        return identity(model)
