"""The spread of results over demonstration sets."""

import statistics

import pytest

from cotrail.errors import InputError
from cotrail.evaluation.metrics.repeated_scores import Spread, mean_and_deviation


def test_results_of_demonstration_sets_have_a_mean_and_a_sample_deviation() -> None:
    assert mean_and_deviation([1.0, 2.0, 4.5]) == Spread(mean=2.5, deviation=statistics.stdev([1.0, 2.0, 4.5]))
    assert mean_and_deviation([61.25]) == Spread(mean=61.25, deviation=None)


def test_without_results_there_is_no_mean() -> None:
    with pytest.raises(InputError, match="no results"):
        mean_and_deviation([])
