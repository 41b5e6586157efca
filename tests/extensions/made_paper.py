"""A made-up paper: two systems on any datasets, and one table of its own beside a published row."""

from collections.abc import Sequence

from msgspec.structs import replace

from cotrail.evaluation.experiments.compare import paper
from cotrail.evaluation.experiments.compare.experiment import CompareExperiment
from cotrail.evaluation.experiments.compare.runs import ComparedRun
from cotrail.evaluation.experiments.report_tables import Column, ExperimentReport, TableRow, beside, published_percents

PUBLISHED = (
    published_percents("table 1", "Search once", "GPT-9", answer_f1=70.5),
    published_percents("table 1", "By heart", "GPT-9", answer_f1=40.0),
)
METHODS = {"no-retrieval": "By heart", "one-step": "Search once"}
COLUMNS = Column("label", "Method"), Column("model", "Model"), Column("answer_f1", "Answer F1", "percent")


class MadeUpExperiment(CompareExperiment, frozen=True, kw_only=True, tag="made-up"):
    """Its file, which names no systems."""

    systems: tuple[str, ...] = tuple(METHODS)


def report(runs: Sequence[ComparedRun]) -> ExperimentReport:
    own = [
        TableRow(
            values={
                "label": METHODS[run.cell.method],
                "model": run.cell.model,
                "answer_f1": run.scores["answer_f1"],
            },
            runs={"answer_f1": (run.cell.name,)},
        )
        for run in runs
    ]
    table = beside("methods", "Methods (table 1)", COLUMNS, own, PUBLISHED)
    return ExperimentReport(summary="Invented.", tables=(table,) if table else ())


PAPER = replace(paper.PAPER, file=MadeUpExperiment, report=report)
