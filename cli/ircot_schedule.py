"""IRCoT's protocol: K and M are searched first, and then tried on the test questions (section 4.1)."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from cli.experiment_inputs import Inputs
from cli.experiment_results import read_result
from cli.output import count
from cli.request import Prepared
from cotrail.evaluation.experiments.ircot.cells import Cell, Line
from cotrail.evaluation.experiments.ircot.protocol import cells_to_search, cells_to_test, choose, lines
from models.queries.experiments import ExperimentRecord
from models.queries.progress import is_complete, read_standings


class IRCoTSchedule:
    """See `Schedule`."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._experiment = inputs.experiment
        self._chosen: dict[Line, Cell] = {}

    @property
    def name(self) -> str:
        """See `Schedule`."""
        return self._experiment.name

    @property
    def planned(self) -> int:
        """See `Schedule`."""
        return len(self._cells())

    def plan(self) -> dict[str, Any]:
        """See `Schedule`."""
        return self._inputs.plan()

    def check(self) -> Sequence[str]:
        """See `Schedule`; says which corpora lack gold paragraphs, which no system can then find."""
        for cell in self._cells():
            self._inputs.prepare(cell)
        return [note for dataset in self._experiment.datasets for note in self._missing(dataset)]

    def due(self, connection: Connection, record: ExperimentRecord) -> Sequence[Cell]:
        """See `Schedule`."""
        ready = (cell for line in lines(self._experiment) for cell in self._ready(connection, record, line))
        return [cell for cell in ready if cell.name not in record.runs]

    def prepare(self, cell: Cell) -> Prepared:
        """See `Schedule`."""
        return self._inputs.prepare(cell)

    def _cells(self) -> Sequence[Cell]:
        """As many runs as there will be: which are on the test questions is known once K and M are chosen."""
        return [
            cell
            for line in lines(self._experiment)
            for searched in [cells_to_search(self._experiment, line)]
            for cell in (*searched, *cells_to_test(self._experiment, line, searched[0] if searched else None))
        ]

    def _missing(self, dataset: str) -> Sequence[str]:
        gold, missing = self._inputs.missing_gold(dataset)
        if not missing:
            return ()
        return (
            f"{dataset}: {missing:,} of {count(gold, 'gold paragraph')} aren't in the corpus "
            f"{self._experiment.datasets[dataset].corpus}; recall can't reach 1. `cotrail data build` makes a corpus "
            "that has them.",
        )

    def _ready(self, connection: Connection, record: ExperimentRecord, line: Line) -> Sequence[Cell]:
        searched = cells_to_search(self._experiment, line)
        if not searched:
            return cells_to_test(self._experiment, line, None)
        if line not in self._chosen and not self._choose(connection, record, line, searched):
            return searched
        return (*searched, *cells_to_test(self._experiment, line, self._chosen[line]))

    def _choose(self, connection: Connection, record: ExperimentRecord, line: Line, searched: Sequence[Cell]) -> bool:
        """Chooses K and M, if all search runs of the line are done."""
        standings = read_standings(connection, record.id)
        if not all(cell.name in record.runs and is_complete(standings[record.runs[cell.name]]) for cell in searched):
            return False
        results = {cell: read_result(connection, record.runs[cell.name], cell) for cell in searched}
        scores = {cell: tuple(result.scores.values()) for cell, result in results.items()}
        self._chosen[line] = choose(scores, self._experiment.rules)
        return True
