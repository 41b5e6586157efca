"""What a run's searches are worth: how far each of them found the paragraphs that a question needs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from msgspec import Struct

from cotrail.core.questions import Hit, Paragraph
from cotrail.core.results import Retrieved
from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.metrics.supporting_paragraphs import (
    Judged,
    compared_paragraphs,
    judged_of,
    ndcg,
    recall_at,
    reciprocal_rank,
)
from cotrail.models.queries.traces import TracedQuestion, read_questions
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs.labels import find_run
from cotrail.services.store import reading

MOST_SEARCHES = 20
"""The searches of a question that are told apart; further ones count with the last of these."""

FOUND = "found"
"""The list of what a search found, in its own order."""


class SearchScores(Struct, frozen=True, kw_only=True):
    """How far a search found the gold paragraphs, as means over the questions that have some and made this search.

    search: its number within a question, from 1; None for all of a question's together, in the order of finding.
    list: `found`, or one of those that it was put together from, of which only what it kept is recorded.
    """

    search: int | None
    list: str
    questions: int
    recall_at_5: float
    recall_at_10: float
    ndcg_at_10: float
    mrr: float


@operation("scores.searches", "GET", "/runs/{run}/searches", Scope.READ)
def show_searches(run: str) -> tuple[SearchScores, ...]:
    """Show how far each search of a run's questions found their gold paragraphs, the first searches first."""
    judged: dict[tuple[int, str], list[Sequence[Judged]]] = defaultdict(list)
    with reading() as connection:
        record = find_run(connection, run)
        scoring = scoring_of(record.dataset)
        for question in read_questions(connection, record.id):
            for key, paragraphs in _rankings(question):
                compared = compared_paragraphs(scoring, paragraphs, question.gold, question.pinned)
                if documents := judged_of(compared):
                    judged[key].append(documents)
    return tuple(_scores(*key, judged[key]) for key in sorted(judged, key=lambda each: (each[0], each[1] != FOUND)))


def _rankings(question: TracedQuestion) -> Iterator[tuple[tuple[int, str], Iterable[Paragraph]]]:
    """The paragraphs of each search of a question, and of each list behind it; all of them under the number 0."""
    yield (0, FOUND), question.paragraphs
    searches = [step.result for step in question.steps if isinstance(step.result, Retrieved) and step.query]
    for number, found in enumerate(searches, start=1):
        place = min(number, MOST_SEARCHES)
        yield (place, FOUND), (hit.paragraph for hit in found.hits)
        for name in dict.fromkeys(each.list for hit in found.hits for each in hit.lists):
            yield (place, name), _of_list(name, found.hits)


def _of_list(name: str, hits: Sequence[Hit]) -> list[Paragraph]:
    ranked = [(each.rank, hit.paragraph) for hit in hits for each in hit.lists if each.list == name]
    return [paragraph for _, paragraph in sorted(ranked, key=lambda pair: pair[0])]


def _scores(search: int, name: str, judged: Sequence[Sequence[Judged]]) -> SearchScores:
    return SearchScores(
        search=search or None,
        list=name,
        questions=len(judged),
        recall_at_5=fmean(recall_at(each, 5) or 0.0 for each in judged),
        recall_at_10=fmean(recall_at(each, 10) or 0.0 for each in judged),
        ndcg_at_10=fmean(ndcg(each, 10) or 0.0 for each in judged),
        mrr=fmean(reciprocal_rank(each) or 0.0 for each in judged),
    )
