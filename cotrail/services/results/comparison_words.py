"""What a comparison says, in sentences."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from cotrail.common.humanize import count, metric_value, percent
from cotrail.evaluation.comparison.differences import ALPHA, POWER, Difference, Finding
from cotrail.evaluation.metrics.metric import MetricFacts
from cotrail.services.results.comparison import ComparedPair, ComparedRun, Comparison
from cotrail.services.results.reports.sheets import NUMBERS

HAS = {True: "has more", False: "is better"}
"""What the run is called that has the higher value, by whether the metric is a number of things."""


def headline(comparison: Comparison) -> str:
    """The answer in one sentence."""
    if len(comparison.pairs) == 1:
        return pair_sentence(comparison, comparison.pairs[0])
    best = max(comparison.runs, key=lambda run: _mean(run, comparison))
    value = shown_value(_mean(best, comparison), comparison.primary)
    others = _others(comparison, best)
    than = "has more than" if comparison.primary.is_count else "is better than"
    beaten = f" and {than} {listed(others['beaten'])}" if "beaten" in others else ""
    rest = (words.format(listed(others[group])) for group, words in _REST.items() if group in others)
    return "; ".join((f"{best.name} has the highest {comparison.primary.title} ({value}){beaten}", *rest)) + "."


_Group = Finding | Literal["beaten", "ahead"]
"""How a run stands to the one with the highest mean: where the difference is shown, which of the two is ahead."""

_REST: Mapping[_Group, str] = {
    "not shown": "no difference from {} is shown",
    "too small": "no difference that matters from {} is shown",
    "ahead": "on the questions that both have, {} has more",
    "unknown": "with {} it can't be compared yet",
}
"""What is said of the runs that the one with the highest mean isn't shown to beat."""


def _others(comparison: Comparison, best: ComparedRun) -> Mapping[_Group, Sequence[str]]:
    """The names of the runs that are compared with the best one, by how they stand to it."""
    found: dict[_Group, list[str]] = defaultdict(list)
    for pair in comparison.pairs:
        if best.id in (pair.first, pair.second):
            other = comparison.run(pair.second if pair.first == best.id else pair.first)
            found[_group(pair.differences[comparison.primary.name], is_first=best.id == pair.first)].append(other.name)
    return found


def _group(difference: Difference, *, is_first: bool) -> _Group:
    if difference.finding != "shown":
        return difference.finding
    return "beaten" if (difference.verdict in ("better", "more")) == is_first else "ahead"


def pair_sentences(comparison: Comparison) -> list[str]:
    """A sentence for each pair, those of the largest differences first; none where the headline is that sentence."""
    if len(comparison.pairs) == 1:
        return []
    primary = comparison.primary.name
    by_size = sorted(comparison.pairs, key=lambda pair: -abs(pair.differences[primary].mean or 0))
    return [pair_sentence(comparison, pair) for pair in by_size]


def pair_sentence(comparison: Comparison, pair: ComparedPair) -> str:
    """What is shown of two runs by the primary metric."""
    metric, difference = comparison.primary, pair.differences[comparison.primary.name]
    first, second = (comparison.run(run_id).name for run_id in (pair.first, pair.second))
    if difference.finding == "unknown":
        return f"{first} and {second} can't be compared yet: no question has ended in every run."
    if difference.finding == "shown":
        more, less = (first, second) if difference.verdict in ("better", "more") else (second, first)
        sureness = _sureness(comparison, difference, metric)
        if metric.is_count:
            return f"{more} has {_amount(difference.mean, metric)} more than {less} ({sureness})."
        by = f" by {_amount(difference.mean, metric)}" if difference.mean else ""
        return f"{more} is better than {less}{by} ({sureness})."
    matters = "that matters " if difference.finding == "too small" else ""
    none = f"No difference {matters}is shown between {first} and {second}"
    if not difference.mean:
        return f"{none}: both have {shown_value(_mean(comparison.run(pair.first), comparison), metric)} {metric.title}."
    higher = first if difference.mean > 0 else second
    sureness, short = _sureness(comparison, difference, metric), "; ".join(_short_of_plan(difference, metric))
    names = listed([comparison.run(run).name for run in pair.plans]) if pair.plans else ""
    asks = f" The plan of {names} asks for more: {short}." if short and names else ""
    needed = "" if difference.shown else _needed(difference)
    return f"{none}: {higher} has {_amount(difference.mean, metric)} more ({sureness}){needed}.{asks}"


def design(comparison: Comparison) -> Iterator[str]:
    """What was compared, and which promise the intervals and verdicts keep."""
    compared = f"Compared on {count(comparison.questions, 'question')} that all runs have."
    alone = [f"{run.name} {run.standing.alone:,}" for run in comparison.runs if run.standing.alone]
    yield compared + (f" Questions that one run alone has: {', '.join(alone)}." if alone else "")
    for run in comparison.runs:
        if run.repeats:
            yield (
                f"{run.name} stands for {len(run.repeats)} repeats: a question's scores are their means, so that what "
                "differs between seeds is in the intervals; answers and traces are those of the first."
            )
    if len({run.dataset for run in comparison.runs}) > 1:
        yield "The runs name different datasets: each is scored by the rules of its own."
    yield from _of_plans(comparison)
    pairs = len(comparison.pairs)
    alphas = sorted({pair.differences[comparison.primary.name].demands.alpha for pair in comparison.pairs})
    levels = " or ".join(_percent(1 - alpha / pairs) for alpha in alphas)
    at_most = f"in at most {' or '.join(map(_percent, alphas))} of such comparisons"
    if comparison.is_fixed:
        yield from _of_a_fixed_number(comparison, at_most)
    else:
        yield from _of_an_open_number(comparison, at_most, levels)


def _of_a_fixed_number(comparison: Comparison, at_most: str) -> Iterator[str]:
    """The tests where all questions have ended."""
    pairs = len(comparison.pairs)
    yield (
        "Paired test of the mean difference: McNemar's exact one for scores of 0 and 1, Gaffke's bounds for others"
        + (f"; tests and intervals are corrected for {pairs} comparisons (Bonferroni)" if pairs > 1 else "")
        + f". Equal systems are called different {at_most}."
    )
    if any(metric.is_count for metric in comparison.metrics):
        yield (
            "Of numbers of things, which have no best value, neither run is better. Their test and intervals are "
            "Student's t, which misses more often than it says where few questions have most of them."
        )


def _of_an_open_number(comparison: Comparison, at_most: str, levels: str) -> Iterator[str]:
    """How far runs are that go on, or that a rule, a budget or a person ended, and what holds of them."""
    pairs = len(comparison.pairs)
    yield from (_how_far(run) for run in comparison.runs if not run.standing.is_whole)
    if comparison.left_out:
        yield (
            f"The first {comparison.questions:,} questions that have ended in every run are compared, in the order in "
            f"which all runs came to them; {comparison.left_out:,} that follow aren't."
        )
    yield (
        "So the number of questions isn't fixed, and a p-value would promise too much. The intervals are those of a "
        "confidence sequence, which holds at every stop"
        + (f", at the level {levels} for {pairs} comparisons" if pairs > 1 else "")
        + f": equal systems are called different {at_most}, whenever one looks. It takes the questions for being in an "
        "order that doesn't depend on them."
    )


def _how_far(run: ComparedRun) -> str:
    """What ended a run before all its questions were asked, or that it is under way."""
    standing = run.standing
    of_all = f"of {count(standing.questions, 'question')}"
    unasked = f"{standing.unasked:,} {of_all} {'was' if standing.unasked == 1 else 'were'} never asked"
    if standing.until:
        return f"{run.name} was asked until {standing.until}{f': {unasked}' if standing.unasked else ''}."
    if standing.ended + standing.unasked < standing.questions:
        also = f", {standing.unasked:,} were never asked" if standing.unasked else ""
        return f"{run.name} isn't finished: {standing.ended:,} {of_all} have ended{also}."
    ended = f"used up its budget ({standing.limit})" if standing.limit else "was cancelled"
    return f"{run.name} {ended}: {unasked}, and count nowhere."


def _of_plans(comparison: Comparison) -> Iterator[str]:
    """Which plans have this comparison, and what of it they don't have."""
    planned = {run.name: run.unplanned for run in comparison.runs if run.unplanned is not None}
    for name, unplanned in planned.items():
        yield f"The plan of {name} " + (f"departs: {'; '.join(unplanned)}." if unplanned else "has this comparison.")
    for pair in comparison.pairs:
        demands = pair.differences[comparison.primary.name].demands
        if pair.plans:
            first, second = (comparison.run(run).name for run in (pair.first, pair.second))
            least = f", and at least {_amount(demands.least, comparison.primary)}" if demands.least else ""
            yield f"Between {first} and {second} it asks for alpha {demands.alpha:g}{least}."
    if not planned:
        yield "No run's plan names a comparison, so this one is an exploration."


def shown_value(value: float | None, metric: MetricFacts) -> str:
    """A mean, in points out of 100 unless it is a number of things."""
    return "-" if value is None else NUMBERS["average" if metric.is_count else "mean"](value)


def shown_score(value: float | None, comparison: Comparison) -> str:
    """A question's score by the primary metric."""
    return metric_value(value, counted=comparison.primary.is_count)


def listed(names: Sequence[str]) -> str:
    """Names as a list in a sentence."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _short_of_plan(difference: Difference, metric: MetricFacts) -> Iterator[str]:
    """Where a difference falls short of what a plan demands, though it would do without one."""
    demands, p_value = difference.demands, difference.corrected
    if p_value is not None and demands.alpha < p_value <= ALPHA:
        yield f"p = {p_value:.3g} is above its alpha of {demands.alpha:g}"
    if not difference.matters:
        yield f"differences below {_amount(demands.least, metric)} don't matter"


def _sureness(comparison: Comparison, difference: Difference, metric: MetricFacts) -> str:
    parts = []
    if difference.interval:
        mirrored = (difference.mean or 0) < 0
        interval = difference.interval.mirrored() if mirrored else difference.interval
        ends = f"{_signless(interval.low, metric)} to {_signless(interval.high, metric)}"
        parts.append(f"{_percent(interval.level)} interval {ends}" + ("" if comparison.is_fixed else ", at every stop"))
    if difference.corrected is not None:
        p = NUMBERS["probability"](difference.corrected)
        corrected = " after correction" if len(comparison.pairs) > 1 else ""
        parts.append(f"p {p}{corrected}" if p.startswith("<") else f"p = {p}{corrected}")
    return ", ".join(parts) or "there is no interval"


def _needed(difference: Difference) -> str:
    if difference.needed is None or difference.needed <= difference.questions:
        return ""
    return (
        f"; about {count(difference.needed, 'question')} would be needed to show such a difference with a probability "
        f"of {percent(POWER, 0)}"
    )


def _amount(mean: float | None, metric: MetricFacts) -> str:
    value = abs(mean or 0)
    return f"{value:.2f} {metric.title}" if metric.is_count else f"{100 * value:.1f} points {metric.title}"


def _signless(value: float, metric: MetricFacts) -> str:
    return f"{value:.2f}" if metric.is_count else f"{100 * value:.1f}"


def _percent(level: float) -> str:
    return f"{100 * level:.4g} %"


def _mean(run: ComparedRun, comparison: Comparison) -> float:
    mean = run.scores[comparison.primary.name].mean
    return float("-inf") if mean is None else mean
