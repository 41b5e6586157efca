"""Scores by the names of metrics, for what only passes them on."""

from collections.abc import Mapping

QuestionScores = Mapping[str, float | None]
"""Scores of one question by the names of the metrics; None where the dataset publishes nothing to compare with."""
