"""The figure of an error analysis."""

from pathlib import Path
from textwrap import fill

from cotrail.evaluation.experiments.charts import Chart, Panel, Series, point_of_share
from cotrail.services.views.reports.figures import write_one
from cotrail.services.views.run_errors import RunErrors

WIDTH = 7.5
"""Inches, in which the names of all causes have room."""
LETTERS = 12
"""The most letters in a line below a bar."""


def write_cause_figure(errors: RunErrors, path: Path) -> None:
    """Writes the shares of the causes as SVG or PNG; raises what `write_one` does."""
    write_one(cause_chart(errors), path, width=WIDTH)


def cause_chart(errors: RunErrors) -> Chart:
    """A bar for the share of each cause, with its confidence interval."""
    wrong = errors.outcomes["wrong"]
    points = tuple(point_of_share(each.questions, wrong) for each in errors.causes)
    labels = tuple(fill(each.cause, LETTERS) for each in errors.causes)
    series = Series(system=f"{errors.system} on {errors.dataset}", shade="strong", points=points)
    return Chart(
        name="causes",
        title=f"Causes of {wrong:,} wrong answers",
        axis="% of the wrong answers",
        kind="bars",
        panels=(Panel(title="", labels=labels, series=(series,)),),
    )
