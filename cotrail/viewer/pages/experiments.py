"""Experiments: how far each is, and its tables and figures as its report has them."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from cotrail.errors import UnavailableError
from cotrail.services.results import experiment_reports
from cotrail.services.results.experiment_reports import ReportedExperiment
from cotrail.services.results.reports.documents import PageFigure, links_of, page_figure
from cotrail.services.runs import experiments, jobs
from cotrail.services.runs.experiments import CellRun, DescribedExperiment
from cotrail.services.runs.jobs import OPEN_JOBS
from cotrail.viewer.page import Shown, link, page

ON_A_PAGE = 20

Place = Annotated[int, Meta(ge=0)]


class ExperimentProgress(Struct, frozen=True, kw_only=True):
    """How far an experiment is: its runs, and its questions that have ended, of all in the runs so far.

    unasked: those that were never asked to their end, as a rule, a budget or a person ended their runs.
    """

    name: str
    state: str
    runs: int
    ended: int
    unasked: int
    questions: int


@page("/experiments")
def index(start: Place = 0) -> Shown:
    """The experiments, the newest first; start: how many of them stand before this page."""
    names = experiments.list_experiments()
    conducted = _conducted()
    shown = [_standing(experiments.show_experiment(name), conducted) for name in names[start : start + ON_A_PAGE]]
    values = {"experiments": shown, "start": start, "next": start + ON_A_PAGE if start + ON_A_PAGE < len(names) else 0}
    return Shown(template="experiments.html", section="experiments", values=values)


@page("/experiments/{experiment}")
def show(experiment: str) -> Shown:
    """An experiment's progress and its results so far."""
    report = experiment_reports.report_experiment(experiment)
    described = experiments.show_experiment(report.experiment)
    standing = _standing(described, _conducted())
    under_way = [each.run for each in described.runs.values() if each.questions["open"]]
    return Shown(
        template="experiment-page.html",
        section="experiments",
        events=link("v1", "runs", under_way[0], "events") if under_way else "",
        values={
            "name": report.experiment,
            "report": report,
            "sheets": report.sheets,
            "figures": _figures(report),
            "links": links_of(report.runs, {run.id: link("runs", run.id) for run in report.runs}),
            "with_pages": True,
            "standing": standing,
            "cells": [(cell, run.run, _ended(run), run.questions) for cell, run in described.runs.items()],
        },
    )


def _conducted() -> set[str]:
    """The names of the experiments whose runs are still being submitted."""
    return {job.name for job in jobs.show_jobs(states=OPEN_JOBS).jobs if job.kind == "experiment"}


def _standing(described: DescribedExperiment, conducted: set[str]) -> ExperimentProgress:
    ended = sum(map(_ended, described.runs.values()))
    questions = sum(sum(run.questions.values()) for run in described.runs.values())
    return ExperimentProgress(
        name=described.experiment,
        state=_state(described.runs, is_conducted=described.experiment in conducted),
        runs=len(described.runs),
        ended=ended,
        unasked=sum(run.questions["cancelled"] for run in described.runs.values()),
        questions=questions,
    )


def _state(runs: Mapping[str, CellRun], *, is_conducted: bool) -> str:
    counts = [run.questions for run in runs.values()]
    if any(each["open"] for each in counts):
        return "running"
    if any(each["blocked"] for each in counts):
        return "stuck"
    if is_conducted:
        return "running"
    return "not begun" if not counts else "ended early" if any(each["cancelled"] for each in counts) else "finished"


def _ended(run: CellRun) -> int:
    return run.questions["finished"] + run.questions["failed"]


def _figures(report: ReportedExperiment) -> list[PageFigure]:
    """The figures; none where matplotlib isn't installed."""
    try:
        return [page_figure(plot) for plot in report.plots]
    except UnavailableError:
        return []
