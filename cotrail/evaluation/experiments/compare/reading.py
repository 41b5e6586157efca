"""Reading a comparison's run from the record."""

import msgspec

from cotrail.evaluation.experiments.compare.experiment import ComparedCell
from cotrail.evaluation.experiments.compare.runs import ComparedRun
from cotrail.evaluation.experiments.recorded_runs import RecordedRun
from cotrail.evaluation.metrics.question_scores import mean_scores


def read_run(cell: ComparedCell, run: RecordedRun) -> ComparedRun:
    """The results of a recorded run."""
    questions = tuple(run.questions)
    means = mean_scores([each.scores for each in questions])
    return ComparedRun(
        cell=cell,
        system=run.system,
        settings=msgspec.to_builtins(run.settings),
        dataset=run.dataset,
        corpus=run.corpus,
        questions=len(questions),
        answered={each.key: each.scores for each in questions if each.answer is not None},
        scores=means.metrics,
        intervals=means.intervals,
        cost=run.cost,
        ends=run.ends,
        asked={each.key: each.scores for each in questions},
    )
