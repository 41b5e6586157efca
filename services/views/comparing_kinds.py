"""Differences between compared runs by kind of question: an exploration, which no test's promise covers."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from cotrail.evaluation.comparison.differences import Difference, anytime_differences, fixed_differences
from cotrail.evaluation.metrics.metric import MetricFacts
from cotrail.services.views.compared_values import MetricColumns, paired
from cotrail.services.views.comparing_questions import SharedQuestions

MOST_KINDS = 20
"""The kinds of a sort that are compared: those of most questions."""


class KindDifference(Struct, frozen=True, kw_only=True):
    """The difference between two runs on the questions of a kind.

    sort: what the kinds are, e.g. `level`. difference: corrected for the kinds of the sort, for this pair alone.
    """

    sort: str
    kind: str
    first: str
    second: str
    difference: Difference


def kind_differences(
    columns: Mapping[str, MetricColumns], pairs: Sequence[tuple[str, str]], metric: MetricFacts, shared: SharedQuestions
) -> tuple[KindDifference, ...]:
    """The differences of these pairs of runs by a metric, for each sort of which the questions have several kinds."""
    return tuple(
        each
        for sort, kinds in _kinds(shared).items()
        for first, second in pairs
        for each in _of_sort(sort, kinds, (first, second), columns, metric, is_fixed=shared.are_fixed)
    )


def _of_sort(
    sort: str,
    kinds: Mapping[str, Sequence[str]],
    pair: tuple[str, str],
    columns: Mapping[str, MetricColumns],
    metric: MetricFacts,
    *,
    is_fixed: bool,
) -> Iterator[KindDifference]:
    first, second = pair
    family = [list(paired(columns[first], columns[second], metric.name, keys).values()) for keys in kinds.values()]
    differences = fixed_differences(family, metric.span) if is_fixed else anytime_differences(family, metric.span)
    for kind, difference in zip(kinds, differences, strict=True):
        yield KindDifference(sort=sort, kind=kind, first=first, second=second, difference=difference)


def _kinds(shared: SharedQuestions) -> dict[str, dict[str, list[str]]]:
    """The questions of each kind by sort, the largest kinds first; sorts of one kind only are left out."""
    sorts: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for key, question in shared.compared.items():
        for sort, kind in question.kinds.items():
            sorts[sort][kind].append(key)
    return {sort: dict(_largest(kinds)) for sort, kinds in sorts.items() if len(kinds) > 1}


def _largest(kinds: Mapping[str, list[str]]) -> list[tuple[str, list[str]]]:
    return sorted(kinds.items(), key=lambda item: (-len(item[1]), item[0]))[:MOST_KINDS]
