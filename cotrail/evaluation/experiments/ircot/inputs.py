"""Questions and demonstrations of an experiment by IRCoT's protocol, read and checked."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, replace

from cotrail.common.humanize import count
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.questions import Question
from cotrail.data.datasets.sampling import sample_questions
from cotrail.data.demonstrations.building import Style
from cotrail.data.demonstrations.sets import RELEASED, demonstration_sets, in_form, listed_set
from cotrail.errors import DemonstrationError, InputError
from cotrail.evaluation.experiments.ircot.cells import Cell
from cotrail.evaluation.experiments.ircot.protocol import DemonstrationFiles, IRCoTExperiment
from cotrail.evaluation.experiments.paper import Inputs
from cotrail.evaluation.metrics.corpus_coverage import coverage

Questions = tuple[Question, ...]


class IRCoTInputs(Inputs):
    """See `Inputs`; the questions are development and test questions, without overlap."""

    experiment: IRCoTExperiment

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._halves = cache(self._draw_halves)
        self._sets = cache(self._draw_sets)

    def files(self) -> Iterator[str]:
        for files in self.experiment.datasets.values():
            yield from filter(None, (files.questions, files.development, files.test, files.official))
        yield from self._demonstration_files()

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
        return bool(self.shown(cell, AnswerForm.COT).instruction)

    def shown(self, cell: Cell, form: AnswerForm) -> Demonstrations:
        """See `Inputs`; of titles empty where the dataset has none."""
        style = self.experiment.style_of(cell.line.model)
        return self._sets(cell.line.demonstrations, style, cell.distractors, form)[cell.demonstration_set - 1]

    def missing_gold(self, dataset: str) -> tuple[int, int]:
        """The number of gold paragraphs of the drawn questions, and how many of these the corpus lacks."""
        corpus = self.corpus(self.experiment.datasets[dataset].corpus)
        covered = coverage(
            [question for part in self._halves(dataset) for question in part], corpus.titled, corpus.paragraphs
        )
        return covered.gold, len(covered.missing)

    def _draw_halves(self, dataset: str) -> tuple[Questions, Questions]:
        """Development and test questions, their gold paragraphs as the corpus has them."""
        files, published_as = self.experiment.datasets[dataset], self.experiment.published_as(dataset)
        names = (files.questions or files.development or "", files.questions or files.test or "")
        development, test = (
            self._located(half, published_as, name, (files.corpus,))
            for half, name in zip(self._sample(dataset), names, strict=True)
        )
        return development, test

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
        files = self.experiment.datasets[dataset]
        return self._loaded(self.experiment.published_as(dataset), path, (files.corpus,), files.official)

    def _demonstration_files(self) -> Iterator[str]:
        """All files of demonstrations that runs may need."""
        styles = dict.fromkeys(map(self.experiment.style_of, self.experiment.model_names))
        for dataset, style in product(self.experiment.datasets, styles):
            files = self._files(dataset, style)
            numbered = [files.cot, files.direct]
            paths = [name.replace("{M}", str(m)) for name in numbered if name for m in self.experiment.grid.distractors]
            plain = [name for name in (files.no_context_cot, files.no_context_direct, files.titles) if name]
            yield from (*paths, *plain)
            if (sets := self.experiment.datasets[dataset].sets) not in (None, RELEASED):
                yield sets

    def _draw_sets(
        self, dataset: str, style: Style, distractors: int | None, form: AnswerForm
    ) -> tuple[Demonstrations, ...]:
        """The demonstration sets; their ids depend on the seed or lists alone, so that all forms and all M agree."""
        experiment = self.experiment
        path, bare = self._path(self._files(dataset, style), distractors, form)
        if path is None:
            return (Demonstrations(),) * experiment.demonstration_sets
        demonstrations = self._read(path)
        if form is not AnswerForm.TITLES:
            demonstrations = in_form(demonstrations, form)
        if bare:
            demonstrations = Demonstrations(items=tuple(replace(each, paragraphs=()) for each in demonstrations.items))
        lists = experiment.datasets[dataset].sets
        try:
            return self._by_seed(demonstrations) if lists is None else self._listed(demonstrations, lists)
        except DemonstrationError as error:
            raise DemonstrationError(f"{path}: {error}") from error

    def _listed(self, demonstrations: Demonstrations, lists: str) -> tuple[Demonstrations, ...]:
        where = lists if lists == RELEASED else str(self.folder / lists)
        return tuple(listed_set(demonstrations, where, n) for n in range(1, self.experiment.demonstration_sets + 1))

    def _by_seed(self, demonstrations: Demonstrations) -> tuple[Demonstrations, ...]:
        size, sets = self.experiment.demonstrations_per_set, self.experiment.demonstration_sets
        if sets > 1 and len(demonstrations.items) == size:
            raise DemonstrationError(
                f"{size} demonstrations are one set of {size}, not {sets}; set `demonstration_sets = 1`, or a smaller "
                "`demonstrations_per_set` to draw from them"
            )
        try:
            return demonstration_sets(demonstrations, self.experiment.seed, sets, size)
        except DemonstrationError as error:
            raise DemonstrationError(f"{error} (`demonstrations_per_set`)") from error

    def _path(self, files: DemonstrationFiles, distractors: int | None, form: AnswerForm) -> tuple[Path | None, bool]:
        """The file, and True if its paragraphs are left out."""
        if form is AnswerForm.TITLES:
            return (self.folder / files.titles if files.titles else None), False
        with_context = (files.direct if form is AnswerForm.DIRECT else None) or files.cot
        without = files.no_context_direct if form is AnswerForm.DIRECT else files.no_context_cot
        if distractors is None and without:
            return self.folder / without, False
        number = distractors if distractors is not None else self.experiment.grid.distractors[0]
        return self.folder / with_context.replace("{M}", str(number)), distractors is None

    def _files(self, dataset: str, style: Style) -> DemonstrationFiles:
        """The files of a style."""
        demonstrations = self.experiment.datasets[dataset].demonstrations
        return (
            _styled(demonstrations, style)
            if isinstance(demonstrations, DemonstrationFiles)
            else self._released(Path(demonstrations), style)
        )

    def _released(self, folder: Path, style: Style) -> DemonstrationFiles:
        """A folder's files as the authors named theirs; the title demonstrations only where they are there."""
        titles = folder / f"no_context_open_llm_retrieval_{style}.txt"
        return DemonstrationFiles(
            cot=str(folder / f"gold_with_{{M}}_distractors_context_cot_qa_{style}.txt"),
            direct=str(folder / f"gold_with_{{M}}_distractors_context_direct_qa_{style}.txt"),
            no_context_cot=str(folder / f"no_context_cot_qa_{style}.txt"),
            no_context_direct=str(folder / f"no_context_direct_qa_{style}.txt"),
            titles=str(titles) if (self.folder / titles).is_file() else None,
        )


def _styled(files: DemonstrationFiles, style: Style) -> DemonstrationFiles:
    """The same paths with the style's name in its place."""
    paths = {form: path.replace("{style}", style) for form, path in asdict(files).items() if path is not None}
    return DemonstrationFiles(**paths)
