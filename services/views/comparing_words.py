"""What a comparison says, in sentences."""

from collections.abc import Iterator, Sequence

from cotrail.common.humanize import count
from cotrail.evaluation.comparison.differences import Difference
from cotrail.evaluation.comparison.power import POWER
from cotrail.evaluation.metrics.metric import MetricFacts
from cotrail.services.views.comparison import ComparedPair, ComparedRun, Comparison
from cotrail.services.views.reports.sheets import NUMBERS


def headline(comparison: Comparison) -> str:
    """The answer in one sentence."""
    if len(comparison.pairs) == 1:
        return pair_sentence(comparison, comparison.pairs[0])
    best = max(comparison.runs, key=lambda run: _mean(run, comparison))
    of_best = [(pair, best.id == pair.first) for pair in comparison.pairs if best.id in (pair.first, pair.second)]
    beaten = [
        _other(comparison, pair, best) for pair, is_first in of_best if _beats(comparison, pair, is_first=is_first)
    ]
    level = [
        _other(comparison, pair, best) for pair, is_first in of_best if not _beats(comparison, pair, is_first=is_first)
    ]
    value = shown_value(_mean(best, comparison), comparison.primary)
    parts = [f"{best.name} has the highest {comparison.primary.title} ({value})"]
    parts += [f"and is better than {listed(beaten)}"] if beaten else []
    return " ".join(parts) + (f"; no difference from {listed(level)} is shown" if level else "") + "."


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
    if not difference.questions:
        return f"{first} and {second} can't be compared yet: no question has ended in every run."
    if difference.verdict != "undecided":
        better, worse = (first, second) if difference.verdict == "better" else (second, first)
        by = f" by {_amount(difference.mean, metric)}" if difference.mean else ""
        return f"{better} is better than {worse}{by} ({_sureness(comparison, difference, metric)})."
    none = f"No difference is shown between {first} and {second}"
    if not difference.mean:
        return f"{none}: both have {shown_value(_mean(comparison.run(pair.first), comparison), metric)} {metric.title}."
    higher = first if difference.mean > 0 else second
    sureness = _sureness(comparison, difference, metric)
    return f"{none}: {higher} has {_amount(difference.mean, metric)} more ({sureness}){_needed(difference)}."


def design(comparison: Comparison) -> Iterator[str]:
    """What was compared, and which promise the intervals and verdicts keep."""
    compared = f"Compared on {count(comparison.questions, 'question')} that all runs have."
    alone = [f"{run.name} {run.standing.alone:,}" for run in comparison.runs if run.standing.alone]
    yield compared + (f" Questions that one run alone has: {', '.join(alone)}." if alone else "")
    if len({run.dataset for run in comparison.runs}) > 1:
        yield "The runs name different datasets: each is scored by the rules of its own."
    yield from _of_plans(comparison)
    pairs = len(comparison.pairs)
    if comparison.is_fixed:
        yield (
            "Paired permutation test"
            + (f", its p-values corrected for {pairs} comparisons by Holm's method" if pairs > 1 else "")
            + "; 95 % intervals of each difference by itself. Equal systems are called different in at most 5 % of "
            "such comparisons."
        )
        return
    for run in comparison.runs:
        if run.standing.until:
            yield f"{run.name} was asked until {run.standing.until}."
        elif not run.standing.is_fixed:
            ended = f"{run.standing.ended:,} of {count(run.standing.questions, 'question')}"
            yield f"{run.name} isn't finished: {ended} have ended."
    if comparison.left_out:
        yield (
            f"The first {comparison.questions:,} questions that have ended in every run are compared, in their order; "
            f"{comparison.left_out:,} that follow aren't."
        )
    yield (
        "So the number of questions isn't fixed, and a p-value would promise too much. The intervals are those of a "
        "confidence sequence, which holds at every stop"
        + (f", at the level {_percent(1 - 0.05 / pairs)} for {pairs} comparisons" if pairs > 1 else "")
        + ": equal systems are called different in at most 5 % of such comparisons, whenever one looks. It takes the "
        "questions for being in an order that doesn't depend on them."
    )


def _of_plans(comparison: Comparison) -> Iterator[str]:
    """Which plans have this comparison, and what of it they don't have."""
    planned = {run.name: run.unplanned for run in comparison.runs if run.unplanned is not None}
    for name, unplanned in planned.items():
        yield f"The plan of {name} " + (f"departs: {'; '.join(unplanned)}." if unplanned else "has this comparison.")
    if not planned:
        yield "No run's plan names a comparison, so this one is an exploration."


def shown_value(value: float | None, metric: MetricFacts) -> str:
    """A mean, in points out of 100 unless it is a number of things."""
    return "-" if value is None else NUMBERS["average" if metric.is_count else "mean"](value)


def shown_score(value: float | None, comparison: Comparison) -> str:
    """A question's score by the primary metric."""
    return shown_value(value, comparison.primary)


def listed(names: Sequence[str]) -> str:
    """Names as a list in a sentence."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _sureness(comparison: Comparison, difference: Difference, metric: MetricFacts) -> str:
    parts = []
    if difference.interval:
        mirrored = (difference.mean or 0) < 0
        interval = difference.interval.mirrored() if mirrored else difference.interval
        ends = f"{_signless(interval.low, metric)} to {_signless(interval.high, metric)}"
        parts.append(f"{_percent(interval.level)} interval {ends}" + _at_every_stop(comparison))
    if difference.corrected is not None:
        told = NUMBERS["probability"](difference.corrected)
        corrected = " after correction" if len(comparison.pairs) > 1 else ""
        parts.append(f"p {told}{corrected}" if told.startswith("<") else f"p = {told}{corrected}")
    return ", ".join(parts) or "there is no interval"


def _at_every_stop(comparison: Comparison) -> str:
    return "" if comparison.is_fixed else ", at every stop"


def _needed(difference: Difference) -> str:
    if difference.needed is None:
        return ""
    if difference.needed <= difference.questions:
        return ""
    return (
        f"; about {count(difference.needed, 'question')} would be needed to show such a difference with a probability "
        f"of {POWER:.0%}".replace("%", " %")
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


def _beats(comparison: Comparison, pair: ComparedPair, *, is_first: bool) -> bool:
    verdict = pair.differences[comparison.primary.name].verdict
    return verdict == ("better" if is_first else "worse")


def _other(comparison: Comparison, pair: ComparedPair, run: ComparedRun) -> str:
    return comparison.run(pair.second if pair.first == run.id else pair.first).name
