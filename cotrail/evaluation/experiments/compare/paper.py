"""Free comparisons as a record, as papers are: any runs, and the published tables that they can fill."""

import msgspec

from cotrail.evaluation.comparison.differences import Reach
from cotrail.evaluation.experiments.compare.experiment import ComparedCell, CompareExperiment, cells, repeat_of
from cotrail.evaluation.experiments.compare.requests import ComparedInputs, request
from cotrail.evaluation.experiments.compare.runs import ComparedRun, selected
from cotrail.evaluation.experiments.compare.tables import report
from cotrail.evaluation.experiments.paper import Paper, at_once
from cotrail.evaluation.experiments.recorded import RecordedRun
from cotrail.evaluation.metrics.question_scores import mean_scores
from cotrail.evaluation.metrics.stop_rules import interval_of

# Reading a comparison's run from the record.


def read_run(cell: ComparedCell, run: RecordedRun) -> ComparedRun:
    """The results of a recorded run."""
    questions = tuple(run.questions)
    asked = {each.key: each.scores for each in questions if each.asked}
    reach = Reach(ended={each.key: each.ended for each in questions}, until=run.until)
    means = mean_scores([*asked.values()], interval_of(is_fixed=not (run.until or len(asked) < len(questions))))
    return ComparedRun(
        cell=cell,
        system=run.system,
        settings=msgspec.to_builtins(run.settings),
        dataset=run.dataset,
        corpus=run.corpus,
        reach=reach,
        answered={each.key: each.scores for each in questions if each.answer is not None},
        scores=means.metrics,
        intervals=means.intervals,
        cost=run.cost,
        ends=run.ends,
        costs={each.key: each.cost for each in questions if each.asked},
        asked=asked,
    )


PAPER = Paper(
    file=CompareExperiment,
    stages=lambda experiment: at_once(cells(experiment)),
    request=request,
    read=read_run,
    report=report,
    select=selected,
    inputs=ComparedInputs,
    repeat=repeat_of,
)
