"""Report of an experiment: its tables and figures as values, which documents and displays show."""

from msgspec import Struct

from cotrail.evaluation.experiments.charts import Chart
from cotrail.evaluation.experiments.report_tables import ReportTable

NO_RESULTS = "No run of the experiment has results yet."


class ExperimentReport(Struct, frozen=True, kw_only=True):
    """The results of an experiment beside the published ones.

    summary: how far it is, what the numbers are, and the source of the published ones.
    tables: numbers unrounded, scores from 0 to 1.
    """

    summary: str
    tables: tuple[ReportTable, ...]
    plots: tuple[Chart, ...]
