"""A comparison as one HTML page."""

from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from typing import Any

from msgspec import Struct

from cotrail.services.views.comparing import MOST_TRACED
from cotrail.services.views.comparing_tables import comparison_tables
from cotrail.services.views.comparing_traces import DifferingQuestion
from cotrail.services.views.comparing_words import design, headline, pair_sentence, pair_sentences, shown_score
from cotrail.services.views.comparison import ComparedPair, Comparison
from cotrail.services.views.reports.comparison_figures import page_differences, page_front
from cotrail.services.views.reports.pages import page
from cotrail.services.views.reports.sheets import sheet

MOST_LISTED = 200
"""The questions of an outcome whose ids are listed."""


class ListedOutcome(Struct, frozen=True, kw_only=True):
    """The questions that a run answered better than another.

    questions: how many; shown: those with their traces; others: ids of the rest, as far as they are listed.
    """

    name: str
    questions: int
    shown: tuple[DifferingQuestion, ...]
    others: tuple[str, ...]


class ListedPair(Struct, frozen=True, kw_only=True):
    """A pair of runs by id and by name, what is shown of it, and its questions."""

    ids: tuple[str, str]
    first: str
    second: str
    sentence: str
    ties: int
    outcomes: tuple[ListedOutcome, ...]


def comparison_page(comparison: Comparison) -> str:
    """The page; raises UnavailableError where matplotlib isn't installed."""
    return page(
        "comparison.html",
        **comparison_values(comparison),
        **comparison_figures(comparison),
        links={},
        now=f"{datetime.now():%Y-%m-%d %H:%M}",
        version=version("cotrail"),
    )


def comparison_values(comparison: Comparison, *, most: int = MOST_TRACED) -> dict[str, Any]:
    """What every page of a comparison says; most: the questions that are shown of each outcome of a pair."""
    return {
        "comparison": comparison,
        "headline": headline(comparison),
        "sentences": pair_sentences(comparison),
        "design": list(design(comparison)),
        "sheets": [sheet(table) for table in comparison_tables(comparison)],
        "pairs": [_listed(comparison, pair, most) for pair in comparison.pairs],
        "score": lambda value: shown_score(value, comparison),
    }


def comparison_figures(comparison: Comparison) -> dict[str, str]:
    """Its figures; raises UnavailableError where matplotlib isn't installed."""
    return {"front": page_front(comparison), "differences": page_differences(comparison)}


def _listed(comparison: Comparison, pair: ComparedPair, most: int) -> ListedPair:
    first, second = (comparison.run(run_id).name for run_id in (pair.first, pair.second))
    won = [each for each in pair.shown if each.is_win][:most]
    lost = [each for each in pair.shown if not each.is_win][:most]
    return ListedPair(
        ids=(pair.first, pair.second),
        first=first,
        second=second,
        sentence=pair_sentence(comparison, pair),
        ties=len(pair.outcomes.ties),
        outcomes=(_outcome(first, pair.outcomes.wins, won), _outcome(second, pair.outcomes.losses, lost)),
    )


def _outcome(name: str, keys: Sequence[str], shown: Sequence[DifferingQuestion]) -> ListedOutcome:
    told = {each.key for each in shown}
    others = tuple(key for key in keys if key not in told)
    return ListedOutcome(name=name, questions=len(keys), shown=tuple(shown), others=others[:MOST_LISTED])
