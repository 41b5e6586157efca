"""Tables of what the runs of an IRCoT experiment cost."""

from cotrail.evaluation.experiments.costs import PER_QUESTION, SPENT, STEPS, spent
from cotrail.evaluation.experiments.costs import totals as costs_of
from cotrail.evaluation.experiments.ircot.line_tables import GOAL, MODEL, PLACE, READER, SYSTEM, names_of, run_names
from cotrail.evaluation.experiments.ircot.measures import CellResults, runs_by_line
from cotrail.evaluation.experiments.report_tables import ReportTable, TableRow, listing

STAGES = "search", "test"


def costs(results: CellResults) -> ReportTable | None:
    """Average cost of an answered question, by line."""
    rows = [
        TableRow(
            values=names_of(line) | spent([run.cost for run in runs], sum(run.finished for run in runs)),
            runs={"steps": run_names(runs)},
        )
        for line, runs in runs_by_line(results).items()
    ]
    columns = (GOAL, PLACE, MODEL, SYSTEM, READER, *SPENT, *STEPS)
    return listing("costs", "What a question costs", columns, rows, notes=(PER_QUESTION,))


def totals(results: CellResults) -> ReportTable | None:
    """Total cost of the runs to search for K and M, and to test."""
    return costs_of({stage: [run.cost for run in results if run.cell.stage == stage] for stage in STAGES})
