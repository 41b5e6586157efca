"""Demonstration sets of an experiment by IRCoT's protocol: file, set and form for each run."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

from msgspec.structs import asdict, replace

from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.data.demonstrations.building import Style
from cotrail.data.demonstrations.files import in_form, read_demonstrations
from cotrail.data.demonstrations.sets import RELEASED, demonstration_sets, listed_set
from cotrail.errors import DemonstrationError
from cotrail.evaluation.experiments.ircot.cells import Cell
from cotrail.evaluation.experiments.ircot.experiment import DemonstrationFiles, IRCoTExperiment


class DemonstrationSets:
    """The demonstrations of an experiment, each file read once; paths are relative to `folder`."""

    def __init__(self, experiment: IRCoTExperiment, folder: Path) -> None:
        self._experiment = experiment
        self._folder = folder
        self._read = cache(read_demonstrations)
        self._drawn = cache(self._draw)

    def of(self, cell: Cell, form: AnswerForm) -> Demonstrations:
        """The cell's demonstrations in this form; empty where the dataset has no title demonstrations."""
        style = self._experiment.style_of(cell.line.model)
        return self._drawn(cell.line.demonstrations, style, cell.distractors, form)[cell.demonstration_set - 1]

    def files(self) -> Iterator[str]:
        """All files that runs may need."""
        styles = dict.fromkeys(map(self._experiment.style_of, self._experiment.model_names))
        for dataset, style in product(self._experiment.datasets, styles):
            files = self._files(dataset, style)
            numbered = [files.cot, files.direct]
            named = [
                name.replace("{M}", str(m)) for name in numbered if name for m in self._experiment.grid.distractors
            ]
            plain = [name for name in (files.no_context_cot, files.no_context_direct, files.titles) if name]
            yield from (*named, *plain)
            if (sets := self._experiment.datasets[dataset].sets) not in (None, RELEASED):
                yield sets

    def _draw(
        self, dataset: str, style: Style, distractors: int | None, form: AnswerForm
    ) -> tuple[Demonstrations, ...]:
        """The demonstration sets; their ids depend on the seed or lists alone, so that all forms and all M agree."""
        experiment = self._experiment
        path, bare = self._path(self._files(dataset, style), distractors, form)
        if path is None:
            return (Demonstrations(),) * experiment.demonstration_sets
        read = self._read(path)
        if form is not AnswerForm.TITLES:
            read = in_form(read, form)
        if bare:
            read = Demonstrations(items=tuple(replace(each, paragraphs=()) for each in read.items))
        lists = experiment.datasets[dataset].sets
        try:
            return self._by_seed(read) if lists is None else self._listed(read, lists)
        except DemonstrationError as error:
            raise DemonstrationError(f"{path}: {error}") from error

    def _listed(self, read: Demonstrations, lists: str) -> tuple[Demonstrations, ...]:
        where = lists if lists == RELEASED else str(self._folder / lists)
        return tuple(listed_set(read, where, n) for n in range(1, self._experiment.demonstration_sets + 1))

    def _by_seed(self, read: Demonstrations) -> tuple[Demonstrations, ...]:
        size, sets = self._experiment.demonstrations_per_set, self._experiment.demonstration_sets
        if sets > 1 and len(read.items) == size:
            raise DemonstrationError(
                f"{size} demonstrations are one set of {size}, not {sets}; set `demonstration_sets = 1`, or a smaller "
                "`demonstrations_per_set` to draw from them"
            )
        try:
            return demonstration_sets(read, self._experiment.seed, sets, size)
        except DemonstrationError as error:
            raise DemonstrationError(f"{error} (`demonstrations_per_set`)") from error

    def _path(self, files: DemonstrationFiles, distractors: int | None, form: AnswerForm) -> tuple[Path | None, bool]:
        """The file, and True if its paragraphs are left out."""
        if form is AnswerForm.TITLES:
            return (self._folder / files.titles if files.titles else None), False
        with_context = (files.direct if form is AnswerForm.DIRECT else None) or files.cot
        without = files.no_context_direct if form is AnswerForm.DIRECT else files.no_context_cot
        if distractors is None and without:
            return self._folder / without, False
        shown = distractors if distractors is not None else self._experiment.grid.distractors[0]
        return self._folder / with_context.replace("{M}", str(shown)), distractors is None

    def _files(self, dataset: str, style: Style) -> DemonstrationFiles:
        """The files of a style."""
        given = self._experiment.datasets[dataset].demonstrations
        return _styled(given, style) if isinstance(given, DemonstrationFiles) else self._released(Path(given), style)

    def _released(self, folder: Path, style: Style) -> DemonstrationFiles:
        """A folder's files as the authors named theirs; the title demonstrations only where they are there."""
        titles = folder / f"no_context_open_llm_retrieval_{style}.txt"
        return DemonstrationFiles(
            cot=str(folder / f"gold_with_{{M}}_distractors_context_cot_qa_{style}.txt"),
            direct=str(folder / f"gold_with_{{M}}_distractors_context_direct_qa_{style}.txt"),
            no_context_cot=str(folder / f"no_context_cot_qa_{style}.txt"),
            no_context_direct=str(folder / f"no_context_direct_qa_{style}.txt"),
            titles=str(titles) if (self._folder / titles).is_file() else None,
        )


def _styled(files: DemonstrationFiles, style: Style) -> DemonstrationFiles:
    """The same paths with the style's name in its place."""
    named = {form: path.replace("{style}", style) for form, path in asdict(files).items() if path is not None}
    return DemonstrationFiles(**named)
