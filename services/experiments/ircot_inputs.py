"""Questions and corpora of an experiment by IRCoT's protocol, read and checked."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from cotrail.configuration.settings import settings
from cotrail.core.ports.retriever import Corpus
from cotrail.core.questions import Question
from cotrail.data.datasets.loading import form_of, load_questions
from cotrail.data.datasets.sampling import sample_questions
from cotrail.errors import InputError
from cotrail.evaluation.experiments.ircot.cells import Stage
from cotrail.evaluation.experiments.ircot.experiment import IRCoTExperiment
from cotrail.evaluation.metrics.corpus_coverage import coverage, located


class Inputs:
    """The questions and corpora of an experiment, each read once; paths are relative to `folder`.

    Raises InputError and its kinds for whatever can't be used.
    """

    def __init__(self, experiment: IRCoTExperiment, folder: Path) -> None:
        self._experiment = experiment
        self._folder = folder
        self._drawn = cache(self._draw)
        self._opened = cache(self._open)

    def corpus(self, dataset: str) -> Corpus:
        """The corpus of a dataset."""
        return self._opened(self._experiment.datasets[dataset].corpus)

    def questions(self, dataset: str, stage: Stage) -> tuple[Question, ...]:
        """The development or the test questions."""
        return self._drawn(dataset)[0 if stage == "search" else 1]

    def missing_gold(self, dataset: str) -> tuple[int, int]:
        """The number of gold paragraphs of the drawn questions, and how many of these the corpus lacks."""
        found = coverage([question for part in self._drawn(dataset) for question in part], self.corpus(dataset).titled)
        return found.gold, len(found.missing)

    def files(self) -> list[str]:
        """The question files that the experiment names."""
        return [
            name
            for files in self._experiment.datasets.values()
            for name in (files.questions, files.development, files.test, files.official)
            if name
        ]

    def _draw(self, dataset: str) -> tuple[tuple[Question, ...], tuple[Question, ...]]:
        """Development and test questions, their gold paragraphs as the corpus has them."""
        files = self._experiment.datasets[dataset]
        development, test = self._sample(dataset)
        return (
            self._located(dataset, development, files.questions or files.development),
            self._located(dataset, test, files.questions or files.test),
        )

    def _located(self, dataset: str, questions: Sequence[Question], path: str | None) -> tuple[Question, ...]:
        snippets = form_of(self._experiment.published_as(dataset), self._folder / (path or "")).snippets
        titled = self.corpus(dataset).titled
        return located(questions, titled, snippets=snippets)

    def _sample(self, dataset: str) -> tuple[tuple[Question, ...], tuple[Question, ...]]:
        experiment, files = self._experiment, self._experiment.datasets[dataset]
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
        files, published_as = self._experiment.datasets[dataset], self._experiment.published_as(dataset)
        official = self._folder / files.official if files.official else None
        return load_questions(published_as, self._folder / path, self.corpus(dataset).paragraphs, official)

    def _open(self, name: str) -> Corpus:
        return settings().corpus_store.open(name)
