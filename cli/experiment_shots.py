"""The demonstrations of an experiment's runs: which file, which set, which form."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from cotrail.errors import DemonstrationError
from cotrail.experiments.cells import Cell
from cotrail.experiments.experiment import DemonstrationFiles, Experiment
from cotrail.prompting.demonstrations import in_form, read_demonstrations
from cotrail.prompting.prompt import AnswerForm, Demonstrations
from cotrail.prompting.sets import demonstration_sets


class Shots:
    """The demonstrations of an experiment, each file read once; paths are relative to `folder`."""

    def __init__(self, experiment: Experiment, folder: Path) -> None:
        self._experiment = experiment
        self._folder = folder
        self._read = cache(read_demonstrations)
        self._drawn = cache(self._draw)

    def of(self, cell: Cell, form: AnswerForm) -> Demonstrations:
        """What the cell's prompts begin with in this form; nothing where the dataset has no title demonstrations."""
        return self._drawn(cell.line.demonstrations, cell.distractors, form)[cell.demonstration_set - 1]

    def files(self) -> Iterator[str]:
        """Every file that a run may need."""
        for dataset in self._experiment.datasets:
            files = self._files(dataset)
            numbered = [files.cot, files.direct]
            named = [
                name.replace("{M}", str(m)) for name in numbered if name for m in self._experiment.grid.distractors
            ]
            plain = [name for name in (files.no_context_cot, files.no_context_direct, files.titles) if name]
            yield from (*named, *plain)

    def _draw(self, dataset: str, distractors: int | None, form: AnswerForm) -> tuple[Demonstrations, ...]:
        """The demonstration sets; the ids in each depend on the seed alone, so that all forms and all M agree."""
        experiment = self._experiment
        path, bare = self._path(dataset, distractors, form)
        if path is None:
            return (Demonstrations(),) * experiment.demonstration_sets
        read = self._read(path)
        if form is not AnswerForm.TITLES:
            read = in_form(read, form)
        if bare:
            read = Demonstrations(items=tuple(replace(each, paragraphs=()) for each in read.items))
        size, sets = experiment.demonstrations_per_set, experiment.demonstration_sets
        try:
            return demonstration_sets(read, experiment.seed, sets, size)
        except DemonstrationError as error:
            raise DemonstrationError(f"{path}: {error} (`demonstrations_per_set`)") from error

    def _path(self, dataset: str, distractors: int | None, form: AnswerForm) -> tuple[Path | None, bool]:
        """The file, and whether its paragraphs are to be left out."""
        files = self._files(dataset)
        if form is AnswerForm.TITLES:
            return (self._folder / files.titles if files.titles else None), False
        with_context = (files.direct if form is AnswerForm.DIRECT else None) or files.cot
        without = files.no_context_direct if form is AnswerForm.DIRECT else files.no_context_cot
        if distractors is None and without:
            return self._folder / without, False
        shown = distractors if distractors is not None else self._experiment.grid.distractors[0]
        return self._folder / with_context.replace("{M}", str(shown)), distractors is None

    def _files(self, dataset: str) -> DemonstrationFiles:
        given = self._experiment.datasets[dataset].demonstrations
        return given if isinstance(given, DemonstrationFiles) else self._released(Path(given))

    def _released(self, folder: Path) -> DemonstrationFiles:
        """A folder's files as the authors named theirs; the title demonstrations only where they are there."""
        style = self._experiment.style
        titles = folder / f"no_context_open_llm_retrieval_{style}.txt"
        return DemonstrationFiles(
            cot=str(folder / f"gold_with_{{M}}_distractors_context_cot_qa_{style}.txt"),
            direct=str(folder / f"gold_with_{{M}}_distractors_context_direct_qa_{style}.txt"),
            no_context_cot=str(folder / f"no_context_cot_qa_{style}.txt"),
            no_context_direct=str(folder / f"no_context_direct_qa_{style}.txt"),
            titles=str(titles) if (self._folder / titles).is_file() else None,
        )
