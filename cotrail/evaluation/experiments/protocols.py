"""The papers whose protocols an experiment can follow."""

from collections.abc import Mapping
from typing import Any

import msgspec

from cotrail.evaluation.experiments.ircot.experiment import Experiment
from cotrail.evaluation.experiments.rethinking.experiment import RethinkingExperiment

AnyExperiment = Experiment | RethinkingExperiment


def experiment_of(described: Mapping[str, Any]) -> AnyExperiment:
    """The experiment of a file or of a stored plan, by its `protocol`: IRCoT's where it names none.

    Raises msgspec.ValidationError.
    """
    experiment: AnyExperiment = msgspec.convert({"protocol": "ircot", **described}, AnyExperiment)
    return experiment
