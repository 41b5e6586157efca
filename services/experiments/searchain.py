"""Protocol of Search-in-the-Chain: its files read and checked, and every run of its tables."""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from cotrail.core.demonstrations import Demonstrations
from cotrail.core.questions import Question
from cotrail.evaluation.experiments.searchain.experiment import SYSTEM, SearChainExperiment
from cotrail.evaluation.experiments.searchain.protocol import Trial, trials
from cotrail.services.composing import compose
from cotrail.services.experiments.drawn_questions import draw_questions
from cotrail.services.experiments.independent import IndependentSchedule
from cotrail.services.prepared_run import PreparedRun
from cotrail.services.provenance import file_record
from cotrail.services.requests import RunRequest
from cotrail.services.shots import make_shots
from cotrail.services.system_settings import configure, merged
from cotrail.systems.registry import find_system


class SearChainSchedule(IndependentSchedule[Trial]):
    """See `Schedule`."""

    def __init__(self, experiment: SearChainExperiment, folder: Path) -> None:
        super().__init__(experiment.name, trials(experiment), folder)
        self._experiment = experiment
        self._drawn = cache(self._draw)

    def plan(self) -> dict[str, Any]:
        """See `Schedule`."""
        submissions = [self.prepare(trial).submission for trial in self._trials]
        bindings = [submission.binding for submission in submissions]
        files = [each.questions for each in self._experiment.datasets.values()]
        return {
            "experiment": msgspec.to_builtins(self._experiment),
            "files": {name: file_record(self._folder / name)["sha256"] for name in files},
            "corpora": {each.corpus: each.binding.corpus for each in submissions if each.corpus},
            "models": {each.model_name: each.binding.model for each in submissions},
            "embedders": sorted({each.embedder for each in bindings if each.embedder}),
            "pins": {role: identity for each in bindings for role, identity in each.pins.items()},
        }

    def _prepare(self, trial: Trial) -> PreparedRun:
        request = self._request(trial)
        system = configure(find_system(SYSTEM), request)
        # What a variation doesn't use, a run that names it is refused.
        named = {role.name: getattr(self._experiment, role.name, None) for role in system.needs.engines}
        engines = {role: name for role, name in named.items() if name is not None}
        composed = compose(
            replace(request, engines=engines),
            system,
            corpus_revision=self._corpus(request.corpus).revision if system.needs.corpus else "",
            shots=make_shots(system.needs, Demonstrations(), Demonstrations()),
            provenance={"cell": msgspec.to_builtins(trial)},
        )
        return PreparedRun(submission=composed, questions=self._drawn(trial.dataset))

    def _request(self, trial: Trial) -> RunRequest:
        experiment, files = self._experiment, self._experiment.datasets[trial.dataset]
        told = merged(experiment.settings.get(SYSTEM, {}), files.settings)
        return RunRequest(
            system=SYSTEM,
            dataset=experiment.format_of(trial.dataset),
            questions=files.questions,
            rules=experiment.rules,
            corpus=files.corpus,
            model=trial.model,
            temperature=experiment.temperature,
            seed=experiment.seed,
            profile=experiment.profile,
            settings=merged(told, trial.settings),
        )

    def _draw(self, dataset: str) -> tuple[Question, ...]:
        """The test questions, their gold paragraphs as the corpus has them; InputError where one has no answer."""
        experiment, files = self._experiment, self._experiment.datasets[dataset]
        path, lookup = self._folder / files.questions, self._corpus(files.corpus).paragraphs
        return draw_questions(
            experiment.format_of(dataset), path, lookup, count=files.test_questions, seed=experiment.seed
        )
