"""Choice of the protocol that an experiment follows."""

from collections.abc import Mapping
from typing import Any

import msgspec

from cotrail.evaluation.experiments.ircot.experiment import IRCoTExperiment
from cotrail.evaluation.experiments.rethinking.experiment import RethinkingExperiment

AnyExperiment = IRCoTExperiment | RethinkingExperiment


def experiment_of(described: Mapping[str, Any]) -> AnyExperiment:
    """Convert a file or a stored plan to an experiment by its `protocol`; IRCoT's if it names none.

    Raises msgspec.ValidationError.
    """
    experiment: AnyExperiment = msgspec.convert({"protocol": "ircot", **described}, AnyExperiment)
    return experiment
