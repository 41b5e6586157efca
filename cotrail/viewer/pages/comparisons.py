"""Comparisons of runs, two runs side by side on a question, and what judges say."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from cotrail.common.humanize import number
from cotrail.errors import InputError, UnavailableError
from cotrail.services.results import comparing, paired_questions, runs, verdicts
from cotrail.services.results.comparison import Comparison, Outcome
from cotrail.services.results.paired_questions import SideBySide
from cotrail.services.results.reports.comparison_page import comparison_figures, comparison_values
from cotrail.services.results.runs import ListedRun
from cotrail.services.results.verdicts import MEANS, QuestionVerdicts
from cotrail.services.runs import labels
from cotrail.viewer.page import Shown, link, page

OFFERED = 30
"""The newest runs, which the form offers."""

MOST_RUNS = 8
"""The runs that are compared at once: 28 pairs."""

MOST_SHOWN = 20
"""The questions that are shown of each outcome of the only pair; of several pairs together so many."""

JUDGE = "judge"
"""The system of a judge's run, which is compared with none."""

ON_A_PAGE = 50
ROWS = 20

Name = Annotated[str, Meta(max_length=1000)]
Start = Annotated[int, Meta(ge=0)]


@page("/compare")
def show(run: Sequence[Name] = (), against: Name | None = None, metric: Name | None = None) -> Shown:
    """Runs compared on the questions that all of them have; a form that chooses them where fewer than two are named.

    metric: decides.
    """
    named = tuple(dict.fromkeys(name for name in run if name.strip()))
    if len(named) > MOST_RUNS:
        raise InputError(f"these are {len(named)} runs: compare up to {MOST_RUNS} at once")
    values = {"offered": _offered(named), "named": named, "against": against, "metric": metric}
    if len(named) < 2:
        values |= {"deciding": ()}
        return Shown(template="compare-choose.html", section="compare", values=values)
    found = comparing.compare_runs(named, against=against, metrics=[metric] if metric else ())
    most = MOST_SHOWN // len(found.pairs)
    return Shown(
        template="compare.html",
        section="compare",
        values={
            **comparison_values(found, most=most),
            **_figures(found),
            **values,
            "deciding": found.deciding,
            "links": _links((each.id, each.name) for each in found.runs),
            "counts": [pair.counts for pair in found.pairs],
        },
    )


@page("/compare/questions")
def questions(run: Sequence[Name], outcome: Outcome = "differ", metric: Name = "", after: str | None = None) -> Shown:
    """The questions of two runs of one outcome."""
    first, second = _two(run)
    found = paired_questions.list_paired_questions(
        first, second, metric=metric, outcome=outcome, limit=ON_A_PAGE, after=after
    )
    values = {"found": found, "outcome": outcome, "chosen_metric": metric}
    return Shown(template="compare-questions.html", section="compare", values=values)


@page("/compare/question")
def question(run: Sequence[Name], question: str, metric: Name = "", start: Start = 0) -> Shown:
    """Two runs side by side on one question; start: the row of steps that is shown first."""
    first, second = _two(run)
    both = paired_questions.show_side_by_side(question, first, second, start=start, limit=ROWS)
    values = {"both": both, "rows": ROWS, "chosen_metric": metric, **_paired(first, second, metric, both.question_id)}
    return Shown(template="compare-question.html", section="compare", values=values, events=_events(both))


def _offered(named: Sequence[str]) -> Mapping[str, Sequence[ListedRun]]:
    """The newest runs that can be compared, by dataset; where one is named, those that share questions with it.

    Judges' runs aren't among them, nor is a run that is alone with its dataset.
    """
    shared = [f"shares={labels.identify(named[0]).run}"] if named else []
    found = [run for run in runs.show_runs(shared, limit=OFFERED).runs if run.system != JUDGE]
    by_dataset: dict[str, list[ListedRun]] = {}
    for run in found:
        by_dataset.setdefault(run.dataset, []).append(run)
    return {dataset: of_it for dataset, of_it in by_dataset.items() if named or len(of_it) > 1}


def _events(both: SideBySide) -> str:
    """The events of the question in the run that is under way; in the second one where both do, as forks are."""
    going_on = [each.run for each in (both.second, both.first) if each.status == "open"]
    return link("v1", "runs", going_on[0], "questions", both.question_id, "events") if going_on else ""


def _two(run: Sequence[str]) -> tuple[str, str]:
    if len(run) != 2:
        raise InputError("name two runs: run=A&run=B")
    first, second = run
    return first, second


def _paired(first: str, second: str, metric: str, question: str) -> dict[str, Any]:
    """All questions of both runs by outcome, and this one's neighbours; why there are none where there are none."""
    try:
        return {
            "paired": paired_questions.list_paired_questions(first, second, metric=metric, limit=1, around=question),
            "unpaired": "",
        }
    except InputError as error:
        return {"paired": None, "unpaired": str(error)}


def _links(named: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """The addresses of runs by their ids and their names."""
    return {name: link("runs", run) for run, name in ((run, each) for run, name in named for each in (name, run))}


def _figures(found: Comparison) -> dict[str, str]:
    """The figures; none where matplotlib isn't installed."""
    try:
        return comparison_figures(found)
    except UnavailableError:
        return {"front": "", "differences": ""}


VERDICTS_ON_A_PAGE = 50

Place = Annotated[int, Meta(ge=0)]
Which = Literal["judged", "split", "all"]


def _is_split(question: QuestionVerdicts) -> bool:
    """Return whether judges say different things of it."""
    return len({each.judgement.verdict for each in question.verdicts if each.judgement}) > 1


WHICH: Mapping[Which, Callable[[QuestionVerdicts], bool]] = {
    "judged": lambda question: bool(question.verdicts),
    "split": _is_split,
    "all": lambda _: True,
}


@page("/runs/{run}/verdicts")
def show_verdicts(run: str, which: Which = "judged", start: Place = 0) -> Shown:
    """The verdicts on a run: what they come to, how far the judges agree, and each question's.

    which: the questions that a judge was asked about, those on which judges disagree, or all; start: how many of them
    stand before this page.
    """
    found = verdicts.show_verdicts(run, per_question=True)
    questions = {name: list(filter(holds, found.per_question)) for name, holds in WHICH.items()}
    values = {
        "found": found,
        "judging": {"judges": found.judges, "agreements": found.agreements, "note": MEANS},
        "number": number,
        "counts": {name: len(each) for name, each in questions.items()},
        "which": which,
        "questions": questions[which][start : start + VERDICTS_ON_A_PAGE],
        "next": start + VERDICTS_ON_A_PAGE if start + VERDICTS_ON_A_PAGE < len(questions[which]) else 0,
    }
    return Shown(template="verdicts-page.html", section="runs", values=values)
