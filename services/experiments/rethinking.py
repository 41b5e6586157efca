"""Protocol of Rethinking with Retrieval: its files read and checked, and every run of its tables."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from cotrail.core.demonstrations import Demonstrations
from cotrail.core.questions import Question
from cotrail.data.demonstrations.files import read_demonstrations
from cotrail.errors import InputError
from cotrail.evaluation.experiments.rethinking.experiment import RethinkingExperiment
from cotrail.evaluation.experiments.rethinking.protocol import Trial, trials
from cotrail.faithfulness.tasks import TASK_OF
from cotrail.services.composing import check_evidence, compose
from cotrail.services.experiments.drawn_questions import draw_questions
from cotrail.services.experiments.independent import IndependentSchedule
from cotrail.services.prepared_run import PreparedRun
from cotrail.services.provenance import file_record
from cotrail.services.requests import RunRequest
from cotrail.services.shots import make_shots
from cotrail.services.system_settings import configure, merged
from cotrail.systems.registry import find_system


class RethinkingSchedule(IndependentSchedule[Trial]):
    """See `Schedule`."""

    def __init__(self, experiment: RethinkingExperiment, folder: Path) -> None:
        super().__init__(experiment.name, trials(experiment), folder)
        self._experiment = experiment
        self._drawn = cache(self._draw)
        self._demonstrations = cache(read_demonstrations)

    def plan(self) -> dict[str, Any]:
        """See `Schedule`."""
        submissions = [self.prepare(trial).submission for trial in self._trials]
        bindings = [submission.binding for submission in submissions]
        corpora = {submission.corpus: submission.binding.corpus for submission in submissions if submission.corpus}
        files = [name for each in self._experiment.datasets.values() for name in (each.questions, each.demonstrations)]
        return {
            "experiment": msgspec.to_builtins(self._experiment),
            "files": {name: file_record(self._folder / name)["sha256"] for name in files},
            "corpora": corpora,
            "knowledge": {source: revision for each in bindings for source, revision in each.pins.items()},
            "models": {submission.model_name: submission.binding.model for submission in submissions},
            "embedders": sorted({each.embedder for each in bindings if each.embedder}),
            "entailers": sorted({each.entailer for each in bindings if each.entailer}),
        }

    def check(self) -> Sequence[str]:
        """See `Schedule`; the notes say what stands in for what the paper has."""
        if not self._trials:
            raise InputError(
                f"no dataset of the experiment {self.name} has a part in the tables that it names; name others"
            )
        return super().check()

    def _prepare(self, trial: Trial) -> PreparedRun:
        request = self._request(trial)
        demonstrations = self._demonstrations(self._folder / self._experiment.datasets[trial.dataset].demonstrations)
        system = configure(find_system(trial.method), request, instructed=bool(demonstrations.instruction))
        if system.needs.corpus and request.corpus is None:
            raise InputError(
                f"the dataset {trial.dataset} needs a `corpus`, where the sentences of chains are looked up"
            )
        questions = self._drawn(request.dataset, trial.dataset, request.corpus)
        if system.needs.evidence:
            check_evidence(questions, self._folder / request.questions)
        composed = compose(
            request,
            system,
            corpus_revision=self._corpus(request.corpus).revision if system.needs.corpus else "",
            shots=make_shots(system.needs, demonstrations, Demonstrations()),
            provenance={"cell": msgspec.to_builtins(trial)},
        )
        return PreparedRun(submission=composed, questions=questions)

    def _request(self, trial: Trial) -> RunRequest:
        experiment, files = self._experiment, self._experiment.datasets[trial.dataset]
        format_ = files.format or trial.dataset
        spec = find_system(trial.method)
        needs = spec.needs(spec.settings())
        named = {role.name: getattr(experiment, role.name) for role in needs.engines}
        return RunRequest(
            system=trial.method,
            dataset=f"{format_}-facts" if trial.has_facts else format_,
            questions=files.questions,
            rules=experiment.rules,
            corpus=files.evidence if trial.has_evidence else files.corpus,
            task=None if format_ in TASK_OF else files.task,
            chains=experiment.chains if needs.samples and "chains" not in trial.settings else None,
            model=trial.model,
            engines={role: name for role, name in named.items() if name is not None},
            seed=experiment.seed,
            profile=experiment.profile,
            settings=merged(experiment.settings.get(trial.method, {}), trial.settings),
        )

    def _draw(self, format_: str, dataset: str, corpus: str | None) -> tuple[Question, ...]:
        """The test questions, their gold paragraphs as the corpus has them; InputError where one has no answer."""
        experiment, files = self._experiment, self._experiment.datasets[dataset]
        lookup = self._corpus(corpus).paragraphs if corpus else None
        path, count = self._folder / files.questions, experiment.test_questions
        return draw_questions(format_, path, lookup, count=count, seed=experiment.seed)
