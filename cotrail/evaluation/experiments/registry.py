"""The papers whose experiments there are: a line a paper."""

from collections.abc import Mapping
from typing import Any, Union

import msgspec

from cotrail.evaluation.experiments import grid
from cotrail.evaluation.experiments.experiment_file import Experiment
from cotrail.evaluation.experiments.ircot import paper as ircot
from cotrail.evaluation.experiments.paper import AnyPaper
from cotrail.evaluation.experiments.rethinking import paper as rethinking
from cotrail.evaluation.experiments.searchain import paper as searchain

PAPERS: tuple[AnyPaper, ...] = (
    ircot.PAPER,
    rethinking.PAPER,
    searchain.PAPER,
    grid.PAPER,
)

DEFAULT = "ircot"
"""The protocol of a file that names none."""


def file_type() -> Any:
    """The type of all experiment files, told apart by their `protocol`."""
    return Union[tuple(paper.file for paper in PAPERS)]  # noqa: UP007


def experiment_of(described: Mapping[str, Any]) -> Experiment:
    """Convert a file or a stored plan to an experiment by its `protocol`; IRCoT's if it names none.

    Raises msgspec.ValidationError.
    """
    experiment: Experiment = msgspec.convert({"protocol": DEFAULT, **described}, file_type())
    return experiment


def paper_of(experiment: Experiment) -> AnyPaper:
    """The paper whose experiment it is."""
    return next(paper for paper in PAPERS if type(experiment) is paper.file)


def complete_plan(plan: dict[str, Any]) -> dict[str, Any]:
    """Return a plan, as an earlier version recorded it, with the keys that experiments have had since by default."""
    try:
        experiment = experiment_of(plan["experiment"])
    except (KeyError, msgspec.ValidationError):
        return plan
    return plan | {"experiment": msgspec.to_builtins(experiment)}
