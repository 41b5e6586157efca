"""A made-up paper: two systems on any datasets, and one table of its own beside a published row."""

from collections.abc import Sequence

from msgspec.structs import replace

from cotrail.evaluation.experiments.compare import paper
from cotrail.evaluation.experiments.compare.experiment import ComparedRun, CompareExperiment
from cotrail.evaluation.experiments.report_tables import Column, ExperimentReport, TableRow
from cotrail.evaluation.experiments.sources import Layout

METHODS = {"no-retrieval": "By heart", "one-step": "Search once"}
LAYOUT = Layout(
    name="methods",
    title="Methods (table 1)",
    columns=(Column("label", "Method"), Column("model", "Model"), Column("answer_f1", "Answer F1", "percent")),
    rows=(
        TableRow(values={"label": "Search once", "model": "GPT-9", "answer_f1": 0.705}, published="table 1"),
        TableRow(values={"label": "By heart", "model": "GPT-9", "answer_f1": 0.4}, published="table 1"),
    ),
)


class MadeUpExperiment(CompareExperiment, frozen=True, kw_only=True, tag="made-up"):
    """Its file, which names no systems."""

    systems: tuple[str, ...] = tuple(METHODS)


def report(runs: Sequence[ComparedRun]) -> ExperimentReport:
    own = [
        TableRow(
            values={"label": METHODS[run.cell.method], "model": run.cell.model, "answer_f1": run.scores["answer_f1"]},
            runs={"answer_f1": (run.cell.name,)},
        )
        for run in runs
    ]
    table = LAYOUT.filled(own)
    return ExperimentReport(summary="Invented.", tables=(table,) if table else ())


PAPER = replace(paper.PAPER, file=MadeUpExperiment, report=report)
