"""Normalization of scores to one scale for all servers.

Lucene 8 dropped the constant factor k1 + 1 from BM25. Elasticsearch and OpenSearch up to 2 kept it, OpenSearch 3
doesn't have it. A server's explanation of a score shows the factor in every version.
"""

from collections.abc import Iterator

from msgspec import Struct


class Explanation(Struct, frozen=True):
    """A server's explanation of a score."""

    value: float
    description: str
    details: "list[Explanation]" = []

    def __iter__(self) -> Iterator["Explanation"]:
        """The explanation and all its parts."""
        yield self
        for detail in self.details:
            yield from detail


def missing_factor(explanation: Explanation) -> float:
    """The factor to multiply scores by so that they include k1 + 1; 1 where they do or aren't BM25."""
    for each in explanation:
        parts = {part.description.partition(",")[0]: part for part in each.details}
        if {"idf", "tf"} <= parts.keys():
            k1 = next((part.value for part in parts["tf"] if part.description.startswith("k1,")), 0.0)
            # The score is idf * tf, on some servers times k1 + 1; it is rounded, so that the nearer of the two counts.
            factor = each.value / (parts["idf"].value * parts["tf"].value)
            return 1 + k1 if abs(factor - 1) < abs(factor - (1 + k1)) else 1.0
    return 1.0
