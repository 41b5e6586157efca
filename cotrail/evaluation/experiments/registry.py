"""The papers whose experiments there are: a line a paper."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import msgspec

from cotrail.common.nearest import refused_choice
from cotrail.evaluation.experiments.paper import Experiment

PAPERS: dict[str, Any] = {
    "ircot": "cotrail.evaluation.experiments.ircot.paper",
    "rethinking": "cotrail.evaluation.experiments.rethinking.paper",
    "searchain": "cotrail.evaluation.experiments.searchain.paper",
    "compare": "cotrail.evaluation.experiments.compare.paper",
}
"""By the `protocol` of experiment files the paper, or the module whose `PAPER` it is, imported once a file names it.

Its type isn't named here, as reading a plan needs nothing of what a paper knows of runs and scores.
"""

DEFAULT = "ircot"
"""The protocol of a file that names none."""


def paper_of(protocol: str) -> Any:
    """The `Paper` of that protocol; raises msgspec.ValidationError if there is none."""
    if protocol not in PAPERS:
        raise msgspec.ValidationError(refused_choice("`protocol`", protocol, PAPERS))
    paper = PAPERS[protocol]
    return import_module(paper).PAPER if isinstance(paper, str) else paper


def protocol_of(described: Mapping[str, Any]) -> str:
    """The protocol that a file or a stored plan names, IRCoT's if it names none."""
    return str(described.get("protocol", DEFAULT))


def file_type(described: Mapping[str, Any]) -> Any:
    """The type of the experiment file that is described, by its `protocol`; any if there is none."""
    protocol = protocol_of(described)
    return paper_of(protocol).file if protocol in PAPERS else Any


def experiment_of(described: Mapping[str, Any]) -> Experiment:
    """Convert a file or a stored plan to an experiment by its `protocol`; IRCoT's if it names none.

    Raises msgspec.ValidationError.
    """
    protocol = protocol_of(described)
    experiment: Experiment = msgspec.convert({**described, "protocol": protocol}, paper_of(protocol).file)
    return experiment
