"""Free comparisons as a record, as papers are: any runs, and the published tables that they can fill."""

from cotrail.evaluation.experiments.compare.experiment import CompareExperiment, cells, repeat_of
from cotrail.evaluation.experiments.compare.reading import read_run
from cotrail.evaluation.experiments.compare.requests import ComparedInputs, request
from cotrail.evaluation.experiments.compare.selection import selected
from cotrail.evaluation.experiments.compare.tables import report
from cotrail.evaluation.experiments.paper import Paper, at_once

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
