"""The questions of two runs by who answered them right: the matrix of wins and losses, and the questions behind it."""

from collections.abc import Mapping, Sequence
from itertools import islice

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.errors import UnknownNameError
from cotrail.evaluation.metrics.metric import MetricFacts
from cotrail.models.queries.asked_questions import AskedQuestion, read_answers
from cotrail.services.views.comparing_metrics import check_names, compared_metrics, summarized_columns
from cotrail.services.views.comparing_questions import compared_records, shared_questions
from cotrail.services.views.comparing_traces import Side
from cotrail.services.views.distinct_names import distinct_names
from cotrail.services.views.outcome_matrix import Outcome, by_outcome, counts_of, paired_scores


class PairedQuestion(Struct, frozen=True, kw_only=True):
    """A question with what both runs came to; key: its id."""

    key: str
    text: str
    first: Side
    second: Side


class PairedQuestions(Struct, frozen=True, kw_only=True):
    """Questions that two runs have, by outcome.

    names: by which the runs can be told apart, by id. metric: what decides. counts: the compared questions by outcome;
    left_out: shared ones that aren't compared yet, as in a comparison.
    shown: some of an outcome, in the order of the first run; after: names those that follow, None where none do.
    before, behind: the neighbours among them of a question that was asked for, by id, None where there is none.
    """

    first: str
    second: str
    names: Mapping[str, str]
    metric: MetricFacts
    counts: Mapping[Outcome, int]
    left_out: int
    shown: tuple[PairedQuestion, ...]
    after: str | None
    before: str | None = None
    behind: str | None = None


class PairRequest(Struct, frozen=True, kw_only=True):
    """Two runs, by what people call them, and which of their questions are asked for.

    metric: its name; the primary one of a comparison where it is empty.
    after: the question behind which they begin; around: one whose neighbours are asked for.
    """

    first: str
    second: str
    metric: str = ""
    outcome: Outcome = "differ"
    limit: int = 100
    after: str | None = None
    around: str | None = None


def paired_questions(connection: Connection, request: PairRequest) -> PairedQuestions:
    """The questions of two runs as they stand.

    Raises InputError where they share no question or no score, UnknownNameError where there is no such metric or
    question.
    """
    check_names([request.metric] if request.metric else [])
    records = compared_records(connection, (request.first, request.second))
    first, second = (record.id for record in records)
    shared = shared_questions(connection, records)
    columns = {record.id: summarized_columns(connection, record) for record in records}
    metric, *_ = compared_metrics(columns, shared.compared, [request.metric] if request.metric else [])
    scores = paired_scores(columns[first], columns[second], metric.name, shared.compared)
    found = by_outcome(scores, metric.highest)
    keys = found[request.outcome]
    places = {key: place for place, key in enumerate(shared.compared)}
    begin = 0 if request.after is None else _behind(keys, places, request.after)
    page = keys[begin : begin + request.limit]
    return PairedQuestions(
        first=first,
        second=second,
        names=distinct_names(connection, (first, second)),
        metric=metric,
        counts=counts_of(found),
        left_out=shared.left_out,
        shown=_shown(connection, (first, second), [shared.compared[key] for key in page], scores),
        after=page[-1] if begin + len(page) < len(keys) else None,
        **_neighbours(keys, places, request.around),
    )


def _behind(keys: Sequence[str], places: Mapping[str, int], after: str) -> int:
    """How many of these stand before the one behind which a page begins, itself included."""
    if after not in places:
        raise UnknownNameError(f"the runs have no question {after!r} in common; give the id of one that both have")
    return sum(places[key] <= places[after] for key in keys)


def _neighbours(keys: Sequence[str], places: Mapping[str, int], around: str | None) -> dict[str, str | None]:
    if around is None or around not in places:
        return {}
    behind = next(islice(keys, _behind(keys, places, around), None), None)
    before = [key for key in keys if places[key] < places[around]]
    return {"before": before[-1] if before else None, "behind": behind}


def _shown(
    connection: Connection,
    runs: tuple[str, str],
    page: Sequence[AskedQuestion],
    scores: Mapping[str, tuple[float, float]],
) -> tuple[PairedQuestion, ...]:
    keys = [question.key for question in page]
    first, second = (read_answers(connection, run, keys) for run in runs)
    return tuple(
        PairedQuestion(
            key=each.key,
            text=each.text,
            first=Side(answer=first[each.key], score=scores[each.key][0]),
            second=Side(answer=second[each.key], score=scores[each.key][1]),
        )
        for each in page
    )
