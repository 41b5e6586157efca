"""Tables of what the runs of an IRCoT experiment cost."""

from cotrail.evaluation.experiments.costs import PER_QUESTION, SPENT, STEPS, spent
from cotrail.evaluation.experiments.ircot.line_tables import GOAL, MODEL, PLACE, READER, SYSTEM, names_of, run_names
from cotrail.evaluation.experiments.ircot.measures import CellResults, runs_by_line
from cotrail.evaluation.experiments.report_tables import Column, ReportTable, TableRow, listing


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
    """Total cost of all runs."""
    stages = {
        "search": [run.cost for run in results if run.cell.stage == "search"],
        "test": [run.cost for run in results if run.cell.stage == "test"],
    }
    rows = [
        TableRow(values={"stage": stage, "runs": len(taken), **spent(taken, 1)})
        for stage, taken in stages.items()
        if taken
    ]
    columns = (Column("stage", "Runs to"), Column("runs", "Runs", "count"), *SPENT, *STEPS)
    note = "An adopted step counts in every run that has it, with what it took when it was computed."
    return listing("totals", "What the experiment took", columns, rows, notes=(note,))
