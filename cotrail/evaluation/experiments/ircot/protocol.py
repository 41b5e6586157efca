"""IRCoT's protocol: the runs of an experiment, and the choice of K and M (IRCoT, section 4.1).

K and M are searched on the development questions with the first demonstration set; with the best, every demonstration
set is tried on the test questions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean

import msgspec

from cotrail.errors import InputError
from cotrail.evaluation.experiments.ircot.cells import Cell, Goal, Line
from cotrail.evaluation.experiments.ircot.experiment import IRCoTExperiment
from cotrail.evaluation.experiments.stages import Stage
from cotrail.evaluation.metrics.scores import QuestionScores
from cotrail.systems.parts.reader_settings import Reader
from cotrail.systems.parts.rules import Rules
from cotrail.systems.spec import Needs, SystemSpec, find_spec


class IRCoTProtocol:
    """The runs of an experiment, given its file and the specs of its systems."""

    def __init__(self, experiment: IRCoTExperiment, systems: Iterable[SystemSpec]) -> None:
        names = tuple(systems)
        self._experiment = experiment
        self._systems = {name: find_spec(names, name) for name in (*experiment.systems, *experiment.settings)}
        for name, spec in self._systems.items():
            if "reading" not in spec.settings.__struct_fields__:
                raise InputError(f"the system {name} has no reader, and an experiment compares systems that have one")

    def lines(self) -> tuple[Line, ...]:
        """The results that the experiment will have, in the order of its file."""
        experiment = self._experiment
        return tuple(
            Line(goal=goal, dataset=dataset, demonstrations=demonstrations, model=model, system=system, reader=reader)
            for model in experiment.model_names
            for dataset, demonstrations in product(experiment.datasets, repeat=2)
            if demonstrations == dataset or experiment.out_of_distribution
            for goal in experiment.goals
            for system in experiment.systems
            for reader in self._readers(experiment.readers_of(model), goal, system)
        )

    def cells_to_search(self, line: Line) -> tuple[Cell, ...]:
        """The runs that K and M of this line are chosen by; none if there is nothing to choose."""
        cells = tuple(self._grid(line))
        return cells if len(cells) > 1 else ()

    def cells_to_test(self, line: Line, best: Cell | None) -> tuple[Cell, ...]:
        """The runs on the test questions: one a demonstration set, or a single one if no prompt has demonstrations.

        best: of `cells_to_search`; None if there are none.
        """
        sets = self._experiment.demonstration_sets if self._shows_demonstrations(line) else 1
        first = best or next(self._grid(line))
        return tuple(
            Cell(
                line=line,
                stage="test",
                demonstration_set=number,
                retrieval_count=first.retrieval_count,
                distractors=first.distractors,
            )
            for number in range(1, sets + 1)
        )

    def stages(self) -> tuple[Stage[Cell], ...]:
        """The runs of each line: those that K and M are chosen by, and with these the ones on the test questions."""
        return tuple(map(self._stage, self.lines()))

    def _stage(self, line: Line) -> Stage[Cell]:
        searched = self.cells_to_search(line)
        if not searched:
            return Stage(cells=self.cells_to_test(line, None))
        return Stage(
            cells=searched,
            choose=partial(choose, rules=self._experiment.rules),
            then=partial(self.cells_to_test, line),
        )

    def _readers(self, readers: tuple[Reader, ...], goal: Goal, system: str) -> tuple[Reader, ...]:
        """The readers that a system is tried with: retrieval needs none, and few systems answer without one."""
        if goal == "retrieval":
            return ("none",) if self._needs(system, "none").corpus else ()
        return tuple(reader for reader in readers if reader != "none" or self._systems[system].states_answer)

    def _grid(self, line: Line) -> Iterator[Cell]:
        for count, distractors in product(self._counts(line), self._distractors(line)):
            yield Cell(
                line=line,
                stage="search",
                demonstration_set=1,
                retrieval_count=count,
                distractors=distractors,
            )

    def _counts(self, line: Line) -> tuple[int | None, ...]:
        """The values that K is chosen from."""
        match self._systems[line.system].counts:
            case "interleaved":
                return self._experiment.grid.ircot_counts
            case "one-step":
                return self._experiment.grid.one_step_counts
            case None:
                return (None,)

    def _distractors(self, line: Line) -> tuple[int | None, ...]:
        """The values that M is chosen from; distractors are shown where demonstrations have paragraphs."""
        needs = self._needs(line.system, line.reader)
        return self._experiment.grid.distractors if needs.corpus and needs.forms else (None,)

    def _shows_demonstrations(self, line: Line) -> bool:
        """Return whether any prompt of the line has demonstrations, be it that which asks for the titles of pages."""
        names_pages = self._experiment.names_pages
        return bool(self._needs(line.system, line.reader).forms) or (
            names_pages(line.dataset) and names_pages(line.demonstrations)
        )

    def _needs(self, system: str, reader: Reader) -> Needs:
        spec = self._systems[system]
        return spec.needs(msgspec.convert({"reading": {"reader": reader}}, spec.settings))


def choose(searched: Mapping[Cell, Sequence[QuestionScores]], rules: Rules) -> Cell:
    """The best of a line's search runs; of equally good ones the first in the grid's order, K before M."""
    return max(searched, key=lambda cell: search_score(cell.line.goal, searched[cell], rules))


def search_score(goal: Goal, scores: Sequence[QuestionScores], rules: Rules) -> float:
    """The score of a search run: the mean recall of gold paragraphs, or F1 of answers, from 0 to 1.

    The released code takes the recall of gold titles, and an F1 by DROP's rules for every dataset, both rounded to a
    thousandth. A question without the score counts 0.
    """
    names = {"paper": ("paragraph_recall", "answer_f1"), "released": ("title_recall", "tuning_f1")}[rules]
    name = names[0] if goal == "retrieval" else names[1]
    mean = fmean(each[name] or 0.0 for each in scores) if scores else 0.0
    return mean if rules == "paper" else round(mean, 3)
