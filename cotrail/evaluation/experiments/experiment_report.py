"""Report of an experiment: its tables and figures as values, which documents and displays show."""

from collections.abc import Sequence

from msgspec import Struct

from cotrail.common.humanize import count
from cotrail.evaluation.experiments.charts import Chart
from cotrail.evaluation.experiments.report_tables import ReportTable

NO_RESULTS = "No run of the experiment has results yet."


class ReportedRun(Struct, frozen=True, kw_only=True):
    """A run behind a report; name: in the experiment, or its id; facts: its configuration as names and values."""

    name: str
    id: str
    state: str
    facts: tuple[tuple[str, str], ...]

    @property
    def page(self) -> str:
        """The file of its own page, relative to the report."""
        return f"runs/{self.id}.html"

    @property
    def anchor(self) -> str:
        """The id of its configuration on the report's page."""
        return f"run-{self.id}"


class ExperimentReport(Struct, frozen=True, kw_only=True):
    """The results of an experiment beside the published ones.

    subject: the protocol, models, datasets, and when it began; empty for runs that are only compared.
    summary: how far it is, what the numbers are, and the source of the published ones.
    tables: numbers unrounded, scores from 0 to 1.
    runs: those behind tables and figures; plan: all that was decided before them, as names and values.
    """

    summary: str
    tables: tuple[ReportTable, ...]
    plots: tuple[Chart, ...] = ()
    subject: str = ""
    runs: tuple[ReportedRun, ...] = ()
    plan: tuple[tuple[str, str], ...] = ()


def completeness(runs: Sequence[bool]) -> str:
    """How many runs have an answer to every question, in words; runs: whether each has."""
    missing = runs.count(False)
    return f"{count(missing, 'run')} with questions that have no answer (yet)" if missing else "all answered"
