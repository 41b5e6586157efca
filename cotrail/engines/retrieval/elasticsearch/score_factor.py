"""One scale of scores for all servers.

Lucene left the constant factor k1 + 1 out of BM25 in version 8. Elasticsearch and OpenSearch up to 2 kept it,
OpenSearch 3 leaves it out. A server's explanation of a score shows which it does, whatever its version.
"""

from collections.abc import Iterator

from msgspec import Struct


class Explanation(Struct, frozen=True):
    """How a server says that a score came about."""

    value: float
    description: str
    details: "list[Explanation]" = []

    def __iter__(self) -> Iterator["Explanation"]:
        """Itself and all that it is made of."""
        yield self
        for detail in self.details:
            yield from detail


def missing_factor(explanation: Explanation) -> float:
    """By what scores must be multiplied so that they hold the factor k1 + 1; 1 where they do or aren't BM25."""
    for each in explanation:
        parts = {part.description.partition(",")[0]: part for part in each.details}
        if {"idf", "tf"} <= parts.keys():
            k1 = next((part.value for part in parts["tf"] if part.description.startswith("k1,")), 0.0)
            factor = each.value / (parts["idf"].value * parts["tf"].value)
            return 1 + k1 if abs(factor - 1) < abs(factor - (1 + k1)) else 1.0
    return 1.0
