"""Tables of an IRCoT experiment: a row for the lines that agree in their labels, a column for each dataset."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cotrail.evaluation.experiments.ircot.cells import Goal, Line
from cotrail.evaluation.experiments.ircot.measures import CellResults, runs_by_line
from cotrail.evaluation.experiments.ircot.naming import in_order, place_of, place_title
from cotrail.evaluation.experiments.report_tables import Column, ReportTable, TableRow, Value, table_of

SYSTEM, READER = Column("system", "System", "system"), Column("reader", "Reader", "reader")
GOAL = Column("goal", "For", "goal")
MODEL, PLACE = Column("model", "Model"), Column("place", "Dataset", "place")


def names_of(line: Line) -> dict[str, Value]:
    """Label values of a line; no reader for retrieval, which needs none."""
    reader = None if line.goal == "retrieval" else line.reader
    return {"goal": line.goal, "place": place_of(line), "model": line.model, "system": line.system, "reader": reader}


def run_names(runs: CellResults) -> tuple[str, ...]:
    """The names of the runs in their experiment."""
    return tuple(run.cell.name for run in runs)


def line_rows(
    results: CellResults,
    goal: Goal,
    labels: Sequence[Column],
    values: Callable[[Line, CellResults], Mapping[str, Value]],
    *,
    transfer: bool = False,
) -> list[TableRow]:
    """Merge all lines with equal labels into one row, which has the values of each of them.

    transfer: whether to take the lines with another dataset's demonstrations, or the others.
    """
    rows: dict[tuple[str, ...], dict[str, Value]] = {}
    behind: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}
    for line, runs in runs_by_line(results).items():
        if line.goal == goal and (line.demonstrations != line.dataset) == transfer:
            key = tuple(getattr(line, label.name) for label in labels)
            row = rows.setdefault(key, {label.name: name for label, name in zip(labels, key, strict=True)})
            found = values(line, runs)
            row.update(found)
            behind.setdefault(key, {}).update(dict.fromkeys(found, run_names(runs)))
    return [TableRow(values=row, runs=behind[key]) for key, row in rows.items()]


def matrix(
    name: str,
    title: str,
    labels: Sequence[Column],
    own: Sequence[TableRow],
    theirs: Sequence[TableRow] = (),
    *,
    order: Callable[[TableRow], Any] | None = None,
    notes: Iterable[str] = (),
) -> ReportTable | None:
    """Make a table with a column for each dataset of the own rows; None where they have none.

    theirs: published rows; those without a value in these columns are left out.
    """
    known = {label.name for label in labels}
    own = [row for row in own if any(value is not None for name, value in row.values.items() if name not in known)]
    places = in_order(
        place for row in own for place, value in row.values.items() if place not in known and value is not None
    )
    if not places:
        return None
    rows = [*own, *(row for row in theirs if any(place in row.values for place in places))]
    if order:
        rows.sort(key=order)
    columns = (*labels, *(Column(place, place_title(place), "score") for place in places))
    return table_of(name, title, columns, rows, notes)
