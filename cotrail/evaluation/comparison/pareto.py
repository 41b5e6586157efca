"""The Pareto front: what no other has more quality than at the same cost, or less cost at the same quality."""

from collections.abc import Mapping

PLACES = 12
"""Decimal places by which costs and qualities are told apart."""


def pareto_front(points: Mapping[str, tuple[float, float]]) -> tuple[str, ...]:
    """The names of the points on the front, the cheapest first; points: cost and quality by name.

    Of points with the same cost and quality, but for rounding, all are on it.
    """
    rounded = {name: (round(cost, PLACES), round(quality, PLACES)) for name, (cost, quality) in points.items()}
    front = []
    best, best_cost = float("-inf"), float("-inf")
    for name, (cost, quality) in sorted(rounded.items(), key=lambda item: (item[1][0], -item[1][1], item[0])):
        if quality > best or (quality, cost) == (best, best_cost):
            front.append(name)
            best, best_cost = quality, cost
    return tuple(front)
