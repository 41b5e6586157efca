"""Recommendation of a comparison: which of its runs to take on each dataset, and what that one costs."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from statistics import fmean
from typing import Literal

from msgspec import Struct

from cotrail.common.humanize import count
from cotrail.core.money import dollars
from cotrail.evaluation.comparison.differences import compared_questions
from cotrail.evaluation.comparison.recommendation import MARGIN, Candidate, RankedCandidate, Recommendation, recommend
from cotrail.evaluation.experiments.compare.experiment import ComparedRun
from cotrail.evaluation.experiments.costs import QuestionCost
from cotrail.evaluation.experiments.report_tables import ReportTable, TableRow, shown_interval
from cotrail.evaluation.experiments.sources import printed
from cotrail.evaluation.metrics.answer_metrics import main_metrics
from cotrail.evaluation.metrics.metric import Metric

Unit = Literal["dollars", "tokens"]
"""What a question costs: dollars where those of all runs are known, otherwise tokens, read and written."""

NOTE = (
    f"To take is the cheapest run that is as good as any other: at most {100 * MARGIN:.0f} points behind each of them "
    "by the ends of the intervals, which hold together with a probability of 95 %. Where no run is that good, nothing "
    "is decided. Worse: shown by a test that is corrected for all pairs of runs. Front: no other run is better at that "
    "cost, or cheaper at that quality. Needed: the number of questions by which such a difference would be shown."
)


class DatasetChoice(Struct, frozen=True, kw_only=True):
    """What is recommended on a dataset, by which metric and how many questions, and in what costs are counted.

    is_fixed: whether the number of questions was fixed beforehand. unasked: how many of each run's questions were never
        asked, by the runs that have such.
    """

    dataset: str
    questions: int
    is_fixed: bool
    unasked: Mapping[str, int]
    metric: Metric
    unit: Unit
    recommendation: Recommendation


def choices(runs: Sequence[ComparedRun]) -> tuple[DatasetChoice, ...]:
    """What is recommended on each dataset whose runs, two at least, are all over.

    Runs that differ in their seeds only are one, with the mean of each question's scores.
    """
    of_datasets: dict[str, list[ComparedRun]] = defaultdict(list)
    for run in runs:
        of_datasets[run.cell.dataset].append(run)
    return tuple(_choices(of_datasets))


def recommendation_table(found: Sequence[DatasetChoice]) -> ReportTable | None:
    """The runs of each dataset next to the best of them; None where nothing is recommended."""
    rows = [_row(choice, candidate) for choice in found for candidate in choice.recommendation.ranking]
    notes = [NOTE, *(f"On {choice.dataset}: {_cut_off(choice)}" for choice in found if not choice.is_fixed)]
    return printed("compare").layouts["recommendation"].filled(rows, *notes)


def sentence(choice: DatasetChoice) -> str:
    """The run to take, why, what it costs, and which cheaper ones aren't decided yet; or that nothing is decided."""
    return " ".join(filter(None, (_decision(choice), _cut_off(choice))))


def _decision(choice: DatasetChoice) -> str:
    found, highest, taken = choice.recommendation, choice.recommendation.highest, choice.recommendation.taken
    if taken is None:
        return f"On {choice.dataset} nothing is decided: {' '.join(_left_open(choice))}"
    why = "the best" if taken is highest else f"as good as {highest.name}, for {_cost(highest, choice.unit)}"
    open_yet = [each for each in found.ranking if not (each.is_worse or each.is_as_good) and _is_cheaper(each, taken)]
    cheaper = f" {_undecided(open_yet[0], choice)}" if open_yet else ""
    return f"On {choice.dataset} take {taken.name}, {why}: {_what(choice, taken)}.{cheaper}"


def _cut_off(choice: DatasetChoice) -> str:
    """That not all questions were asked, and what that means; empty where their number was fixed beforehand."""
    if choice.is_fixed:
        return ""
    never = ", ".join(f"{number:,} of {name}" for name, number in choice.unasked.items())
    unasked = f" Never asked: {never}." if never else ""
    return (
        f"Compared are the first {count(choice.questions, 'question')} that were asked in every run, as not all were "
        f"asked to their end: the intervals hold wherever a run ends.{unasked}"
    )


def _left_open(choice: DatasetChoice) -> Iterator[str]:
    """Why nothing is decided, what there is to choose from, and by how many questions more would be known."""
    found, asked = choice.recommendation, count(choice.questions, "question")
    if found.highest.mean <= choice.metric.lowest:
        yield f"no run scores anything in {asked}."
        return
    yield f"{asked} leave it open for each run whether it is more than {100 * MARGIN:.0f} points behind another."
    shown = [each for name in found.front for each in found.ranking if each.name == name] or list(found.ranking)
    where = "On the front of quality and cost" if found.front else "The runs"
    yield f"{where}: {'; '.join(f'{each.name}, {_what(choice, each)}' for each in shown)}."
    if len(found.ranking) > 1 and (needed := _needed(found.ranking[1], choice)):
        yield f"Which of {found.highest.name} and {found.ranking[1].name} is better, about {needed} would show."


def _what(choice: DatasetChoice, candidate: RankedCandidate) -> str:
    cost = "" if candidate.cost is None else f" for {_cost(candidate, choice.unit)} a question"
    return f"{100 * candidate.mean:.1f} {choice.metric.title}{cost}"


def _is_cheaper(one: RankedCandidate, other: RankedCandidate) -> bool:
    return one.cost is not None and other.cost is not None and one.cost < other.cost


def _undecided(candidate: RankedCandidate, choice: DatasetChoice) -> str:
    needed = f"; about {needed} would show it" if (needed := _needed(candidate, choice)) else ""
    return f"Whether {candidate.name}, for {_cost(candidate, choice.unit)}, is worse isn't decided{needed}."


def _needed(candidate: RankedCandidate, choice: DatasetChoice) -> str:
    """How many questions would show that it is behind; empty where that isn't known, or there are as many."""
    number = candidate.behind.needed if candidate.behind else None
    return count(number, "question") if number is not None and number > choice.questions else ""


def _choices(of_datasets: Mapping[str, Sequence[ComparedRun]]) -> Iterator[DatasetChoice]:
    for dataset, runs in of_datasets.items():
        groups: dict[str, list[ComparedRun]] = defaultdict(list)
        for run in runs:
            groups[run.cell.first].append(run)
        shared = compared_questions([run.reach for run in runs])
        metric, keys = _primary(runs, shared.keys)
        if metric and len(groups) > 1 and all(run.is_over for run in runs):
            costs = [run.costs.get(key, QuestionCost()) for run in runs for key in keys]
            unit: Unit = "tokens" if any(cost.dollars is None for cost in costs) else "dollars"
            candidates = [_candidate(name, group, metric.name, keys, unit) for name, group in groups.items()]
            yield DatasetChoice(
                dataset=dataset,
                questions=len(keys),
                is_fixed=shared.is_fixed,
                unasked={run.cell.name: run.unasked for run in runs if run.unasked},
                metric=metric,
                unit=unit,
                recommendation=recommend(candidates, metric.span, metric.lowest, is_fixed=shared.is_fixed),
            )


def _primary(runs: Sequence[ComparedRun], compared: Sequence[str]) -> tuple[Metric | None, Sequence[str]]:
    """The first of the main scores that all runs have, and the compared questions that have it in each of them."""
    for metric in main_metrics():
        keys = [key for key in compared if all(_score(run, key, metric.name) is not None for run in runs)]
        if keys and not metric.is_count:
            return metric, keys
    return None, ()


def _candidate(name: str, runs: Sequence[ComparedRun], metric: str, keys: Sequence[str], unit: Unit) -> Candidate:
    costs = {key: [_cost_of(run, key, unit) for run in runs] for key in keys}
    scores = {key: fmean(_score(run, key, metric) or 0.0 for run in runs) for key in keys}
    return Candidate(name=name, scores=scores, costs=[fmean(of) for of in costs.values()])


def _cost_of(run: ComparedRun, key: str, unit: Unit) -> float:
    cost = run.costs.get(key, QuestionCost())
    return cost.tokens if unit == "tokens" else cost.dollars or 0.0


def _score(run: ComparedRun, key: str, metric: str) -> float | None:
    return run.asked[key].get(metric) if key in run.asked else None


def _row(choice: DatasetChoice, candidate: RankedCandidate) -> TableRow:
    behind, found = candidate.behind, choice.recommendation
    return TableRow(
        values={
            "dataset": choice.dataset,
            "run": candidate.name,
            "metric": choice.metric.title,
            "mean": candidate.mean,
            "behind": behind.mean if behind else None,
            "interval": shown_interval(behind.interval if behind else None),
            "p": behind.corrected if behind else None,
            choice.unit: candidate.cost,
            f"{choice.unit} interval": shown_interval(candidate.cost_interval),
            "front": "on it" if candidate.name in found.front else None,
            "standing": _how_it_stands(found, candidate),
            "needed": behind.needed if behind else None,
        },
        chosen=candidate.name == found.chosen,
    )


def _how_it_stands(found: Recommendation, candidate: RankedCandidate) -> str:
    if candidate is found.highest:
        return "best" if candidate.is_as_good else "highest"
    if candidate.is_as_good:
        return "as good"
    return "worse" if candidate.is_worse else "undecided"


def _cost(candidate: RankedCandidate, unit: Unit) -> str:
    cost = candidate.cost or 0.0
    return dollars(Decimal(str(cost))) if unit == "dollars" else f"{cost:,.0f} tokens"
