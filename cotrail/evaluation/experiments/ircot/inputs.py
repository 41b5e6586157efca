"""Questions and demonstrations of an experiment by IRCoT's protocol, read and checked."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property

from cotrail.common.humanize import count
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.questions import Question
from cotrail.data.datasets.loading import form_of, load_questions
from cotrail.data.datasets.sampling import sample_questions
from cotrail.errors import InputError
from cotrail.evaluation.experiments.inputs import Inputs
from cotrail.evaluation.experiments.ircot.cells import Cell
from cotrail.evaluation.experiments.ircot.demonstrations import DemonstrationSets
from cotrail.evaluation.experiments.ircot.experiment import IRCoTExperiment
from cotrail.evaluation.metrics.corpus_coverage import coverage, located

Questions = tuple[Question, ...]


class IRCoTInputs(Inputs):
    """See `Inputs`; the questions are development and test questions, without overlap."""

    experiment: IRCoTExperiment

    @cached_property
    def demonstrations(self) -> DemonstrationSets:
        """The demonstration sets of all datasets."""
        return DemonstrationSets(self.experiment, self.folder)

    def files(self) -> Iterator[str]:
        """See `Inputs`."""
        for files in self.experiment.datasets.values():
            yield from filter(None, (files.questions, files.development, files.test, files.official))
        yield from self.demonstrations.files()

    def corpora(self) -> Iterable[str]:
        """See `Inputs`; gold paragraphs are located in them."""
        return [files.corpus for files in self.experiment.datasets.values()]

    def notes(self) -> Iterator[str]:
        """See `Inputs`; they name corpora that lack gold paragraphs, which no system can then find."""
        for dataset, files in self.experiment.datasets.items():
            gold, missing = self.missing_gold(dataset)
            if missing:
                yield (
                    f"{dataset}: {missing:,} of {count(gold, 'gold paragraph')} aren't in the corpus {files.corpus}; "
                    "paragraph recall can't reach 1. `cotrail data build` makes a corpus that has them."
                )

    def questions(self, cell: Cell) -> Questions:
        """See `Inputs`; the development questions of a search, or the test questions."""
        return self._halves(cell.line.dataset)[0 if cell.stage == "search" else 1]

    def instructed(self, cell: Cell) -> bool:
        """See `Inputs`."""
        return bool(self.demonstrations.of(cell, AnswerForm.COT).instruction)

    def shown(self, cell: Cell, form: AnswerForm) -> Demonstrations:
        """See `Inputs`."""
        return self.demonstrations.of(cell, form)

    def missing_gold(self, dataset: str) -> tuple[int, int]:
        """The number of gold paragraphs of the drawn questions, and how many of these the corpus lacks."""
        corpus = self.corpus(self.experiment.datasets[dataset].corpus)
        covered = coverage([question for part in self._halves(dataset) for question in part], corpus.titled)
        return covered.gold, len(covered.missing)

    @cache  # noqa: B019
    def _halves(self, dataset: str) -> tuple[Questions, Questions]:
        """Development and test questions, their gold paragraphs as the corpus has them."""
        files = self.experiment.datasets[dataset]
        development, test = self._sample(dataset)
        return (
            self._located(dataset, development, files.questions or files.development),
            self._located(dataset, test, files.questions or files.test),
        )

    def _located(self, dataset: str, questions: Sequence[Question], path: str | None) -> Questions:
        snippets = form_of(self.experiment.published_as(dataset), self.folder / (path or "")).snippets
        titled = self.corpus(self.experiment.datasets[dataset].corpus).titled
        return located(questions, titled, snippets=snippets)

    def _sample(self, dataset: str) -> tuple[Questions, Questions]:
        experiment, files = self.experiment, self.experiment.datasets[dataset]
        development, test = experiment.development_questions, experiment.test_questions
        if files.questions:
            return sample_questions(self._load(dataset, files.questions), development, test, experiment.seed)
        if not (files.development and files.test):
            raise InputError(
                f"the dataset {dataset} names no question file; give `questions`, or `development` and `test`"
            )
        first, second = self._load(dataset, files.development), self._load(dataset, files.test)
        return (
            sample_questions(first, min(development, len(first)), 0, experiment.seed)[0],
            sample_questions(second, min(test, len(second)), 0, experiment.seed)[0],
        )

    def _load(self, dataset: str, path: str) -> Questions:
        files, published_as = self.experiment.datasets[dataset], self.experiment.published_as(dataset)
        official = self.folder / files.official if files.official else None
        return load_questions(published_as, self.folder / path, self.corpus(files.corpus).paragraphs, official)
