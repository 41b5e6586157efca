"""Choice of the protocol that an experiment follows."""

from collections.abc import Mapping
from typing import Any

import msgspec

from cotrail.evaluation.experiments.ircot.experiment import IRCoTExperiment
from cotrail.evaluation.experiments.rethinking.experiment import RethinkingExperiment
from cotrail.evaluation.experiments.searchain.experiment import SearChainExperiment

AnyExperiment = IRCoTExperiment | RethinkingExperiment | SearChainExperiment

DEFAULT = "ircot"
"""The protocol of a file that names none."""


def experiment_of(described: Mapping[str, Any]) -> AnyExperiment:
    """Convert a file or a stored plan to an experiment by its `protocol`; IRCoT's if it names none.

    Raises msgspec.ValidationError.
    """
    experiment: AnyExperiment = msgspec.convert({"protocol": DEFAULT, **described}, AnyExperiment)
    return experiment


def complete_plan(plan: dict[str, Any]) -> dict[str, Any]:
    """Return a plan, as an earlier version recorded it, with the keys that experiments have had since by default."""
    try:
        experiment = experiment_of(plan["experiment"])
    except (KeyError, msgspec.ValidationError):
        return plan
    return plan | {"experiment": msgspec.to_builtins(experiment)}
