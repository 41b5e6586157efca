"""What the file of an experiment by IRCoT's protocol names, read and checked: questions, demonstrations, corpora."""

from collections.abc import Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from cli.experiment_shots import Shots
from cli.request import Prepared, RunRequest, compose, described, needs_of, system_settings
from configuration.settings import settings
from cotrail.core.ports.retriever import Corpus
from cotrail.core.prompts import AnswerForm
from cotrail.core.questions import Question
from cotrail.data.datasets.loading import has_snippets, load_questions
from cotrail.data.datasets.sampling import sample_questions
from cotrail.engines.language_models.catalogue import check_profile, find_model, identity
from cotrail.errors import InputError
from cotrail.evaluation.experiments.ircot.cells import Cell, Stage
from cotrail.evaluation.experiments.ircot.experiment import IRCoTExperiment
from cotrail.evaluation.metrics.corpus_coverage import coverage, located
from cotrail.systems import find_system


class Inputs:
    """The inputs of an experiment, each read once; paths are relative to `folder`.

    Raises InputError and its kinds for whatever can't be used.
    """

    def __init__(self, experiment: IRCoTExperiment, folder: Path) -> None:
        self.experiment = experiment
        self._folder = folder
        self._shots = Shots(experiment, folder)
        self._drawn = cache(self._draw)
        self._corpus = cache(self._open_corpus)

    def plan(self) -> dict[str, Any]:
        """Everything that decides the experiment's results; an experiment that goes on must have the same."""
        experiment = self.experiment
        names = dict.fromkeys((*self._question_files(), *self._shots.files()))
        return {
            "experiment": msgspec.to_builtins(experiment),
            "files": {name: described(self._folder / name)["sha256"] for name in names},
            "corpora": {each.corpus: self._corpus(each.corpus).revision for each in experiment.datasets.values()},
            "models": {name: self._model(name) for name in experiment.model_names},
        }

    def questions(self, dataset: str, stage: Stage) -> tuple[Question, ...]:
        """The development or the test questions."""
        return self._drawn(dataset)[0 if stage == "search" else 1]

    def missing_gold(self, dataset: str) -> tuple[int, int]:
        """How many gold paragraphs the drawn questions have, and how many of these the corpus lacks."""
        corpus = self._corpus(self.experiment.datasets[dataset].corpus)
        found = coverage([question for part in self._drawn(dataset) for question in part], corpus.titled)
        return found.gold, len(found.missing)

    def prepare(self, cell: Cell) -> Prepared:
        """The run of a cell, as it is submitted."""
        line, files = cell.line, self.experiment.datasets[cell.line.dataset]
        spec = find_system(line.system)
        request = self._request(cell)
        configured = system_settings(spec, request, instructed=bool(self._shots.of(cell, AnswerForm.COT).instruction))
        titles = self._shots.of(cell, AnswerForm.TITLES)
        needs = needs_of(spec, configured)
        shots = {form: self._shots.of(cell, form) for form in sorted(needs.forms)} | dict(needs.brought)
        return Prepared(
            submission=compose(
                request,
                spec=spec,
                configured=configured,
                needs=needs,
                retriever=self._corpus(files.corpus) if needs.corpus else None,
                shots=shots | ({AnswerForm.TITLES: titles} if titles.items else {}),
                provenance={"cell": msgspec.to_builtins(cell)},
                today=date.today(),
            ),
            questions=self.questions(line.dataset, cell.stage),
        )

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

    def _draw(self, dataset: str) -> tuple[tuple[Question, ...], tuple[Question, ...]]:
        """Development and test questions, their gold paragraphs as they stand in the corpus."""
        files = self.experiment.datasets[dataset]
        development, test = self._sample(dataset)
        return (
            self._located(dataset, development, files.questions or files.development),
            self._located(dataset, test, files.questions or files.test),
        )

    def _located(self, dataset: str, questions: Sequence[Question], path: str | None) -> tuple[Question, ...]:
        snippets = has_snippets(self.experiment.published_as(dataset), self._folder / (path or ""))
        titled = self._corpus(self.experiment.datasets[dataset].corpus).titled
        return located(questions, titled, snippets=snippets)

    def _sample(self, dataset: str) -> tuple[tuple[Question, ...], tuple[Question, ...]]:
        experiment, files = self.experiment, self.experiment.datasets[dataset]
        development, test = experiment.development_questions, experiment.test_questions
        if files.questions:
            both = self._load(dataset, files.questions)
            return sample_questions(both, development, test, experiment.seed)
        if not (files.development and files.test):
            raise InputError(
                f"the dataset {dataset} names no question file; give `questions`, or `development` and `test`"
            )
        first, second = self._load(dataset, files.development), self._load(dataset, files.test)
        return (
            sample_questions(first, min(development, len(first)), 0, experiment.seed)[0],
            sample_questions(second, min(test, len(second)), 0, experiment.seed)[0],
        )

    def _load(self, dataset: str, path: str) -> tuple[Question, ...]:
        files, published_as = self.experiment.datasets[dataset], self.experiment.published_as(dataset)
        official = self._folder / files.official if files.official else None
        return load_questions(published_as, self._folder / path, self._corpus(files.corpus).paragraphs, official)

    def _question_files(self) -> list[str]:
        return [
            name
            for files in self.experiment.datasets.values()
            for name in (files.questions, files.development, files.test, files.official)
            if name
        ]

    def _open_corpus(self, name: str) -> Corpus:
        return settings().corpus_store.open(name)
