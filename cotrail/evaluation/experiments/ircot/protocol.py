"""IRCoT's protocol: the runs of an experiment, and the choice of K and M (IRCoT, section 4.1).

K and M are searched on the development questions with the first demonstration set; with the best, every demonstration
set is tried on the test questions.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from statistics import fmean

from cotrail.evaluation.experiments.ircot.cells import Cell, Goal, Line, SystemName
from cotrail.evaluation.experiments.ircot.experiment import IRCoTExperiment
from cotrail.evaluation.metrics.question_scores import QuestionScores
from cotrail.systems.rules import Rules
from cotrail.systems.settings import Reader


def lines(experiment: IRCoTExperiment) -> tuple[Line, ...]:
    """The results that the experiment produces, in the order of its file."""
    return tuple(
        Line(goal=goal, dataset=dataset, demonstrations=shown, model=model, system=system, reader=reader)
        for model in experiment.model_names
        for dataset, shown in product(experiment.datasets, repeat=2)
        if shown == dataset or experiment.out_of_distribution
        for goal in experiment.goals
        for system in experiment.systems
        for reader in _readers(experiment.readers_of(model), goal, system)
    )


def _readers(readers: tuple[Reader, ...], goal: Goal, system: SystemName) -> tuple[Reader, ...]:
    """Retrieval needs no reader, and only IRCoT has an answer without one."""
    if goal == "retrieval":
        return () if system == "no-retrieval" else ("none",)
    return tuple(reader for reader in readers if reader != "none" or system == "ircot")


def cells_to_search(experiment: IRCoTExperiment, line: Line) -> tuple[Cell, ...]:
    """The search runs by which K and M of a line are chosen; none if there is nothing to choose."""
    cells = tuple(_grid(experiment, line))
    return cells if len(cells) > 1 else ()


def cells_to_test(experiment: IRCoTExperiment, line: Line, chosen: Cell | None) -> tuple[Cell, ...]:
    """The runs on the test questions: one per demonstration set, or a single one if no prompt shows demonstrations.

    chosen: the best of `cells_to_search`; None if there are none.
    """
    sets = experiment.demonstration_sets if _shows_demonstrations(experiment, line) else 1
    first = chosen or next(_grid(experiment, line))
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


def _shows_demonstrations(experiment: IRCoTExperiment, line: Line) -> bool:
    """Return whether any prompt of the line shows demonstrations.

    One-step retrieval without a reader has prompts for IIRC only, which ask for titles of pages.
    """
    if line.system != "one-step" or line.reader != "none":
        return True
    return experiment.names_pages(line.dataset) and experiment.names_pages(line.demonstrations)


def position(experiment: IRCoTExperiment, cell: Cell) -> tuple[int, str, int]:
    """Sort key of a run among all of the experiment's."""
    searched = cells_to_search(experiment, cell.line)
    number = cell.demonstration_set if cell.stage == "test" else searched.index(cell)
    return lines(experiment).index(cell.line), cell.stage, number


def choose(searched: Mapping[Cell, Sequence[QuestionScores]], rules: Rules) -> Cell:
    """The best of a line's search runs; of equally good ones the first in the grid's order, K before M."""
    return max(searched, key=lambda cell: search_score(cell.line.goal, searched[cell], rules))


def search_score(goal: Goal, scores: Sequence[QuestionScores], rules: Rules) -> float:
    """Score of a search run: the mean recall of gold paragraphs, or F1 of answers, from 0 to 1.

    The released code uses the recall of gold titles, and an F1 by DROP's rules for every dataset, both rounded to a
    thousandth. A question without such a score counts 0.
    """
    names = {"paper": ("support_recall", "answer_f1"), "released": ("title_recall", "tuning_f1")}[rules]
    name = names[0] if goal == "retrieval" else names[1]
    mean = fmean(getattr(each, name) or 0.0 for each in scores) if scores else 0.0
    return mean if rules == "paper" else round(mean, 3)


def _grid(experiment: IRCoTExperiment, line: Line) -> Iterator[Cell]:
    for count, distractors in product(_counts(experiment, line), _distractors(experiment, line)):
        yield Cell(
            line=line,
            stage="search",
            demonstration_set=1,
            retrieval_count=count,
            distractors=distractors,
        )


def _counts(experiment: IRCoTExperiment, line: Line) -> tuple[int | None, ...]:
    match line.system:
        case "ircot":
            return experiment.grid.ircot_counts
        case "one-step":
            return experiment.grid.one_step_counts
    return (None,)


def _distractors(experiment: IRCoTExperiment, line: Line) -> tuple[int | None, ...]:
    shows_paragraphs = line.system == "ircot" or (line.system == "one-step" and line.reader != "none")
    return experiment.grid.distractors if shows_paragraphs else (None,)
