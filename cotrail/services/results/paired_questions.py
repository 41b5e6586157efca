"""Two runs on the same questions: the questions by who answered them right, and both runs side by side on one."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.common.printable_text import first_difference
from cotrail.common.word_differences import Piece, Pieces, shared_places, word_differences
from cotrail.core.results import Failure
from cotrail.errors import InputError, UnknownNameError
from cotrail.evaluation.metrics.metric import MetricFacts
from cotrail.models.queries.listed_questions import AskedQuestion, read_answers
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion, TracedStep, read_question
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.results.causes import Verdict as QuestionVerdict
from cotrail.services.results.causes import details_of, verdict_of
from cotrail.services.results.compared_questions import (
    QUOTED_QUESTION,
    Parting,
    Side,
    apart,
    compared_records,
    distinct_names,
    parting,
    shared_questions,
)
from cotrail.services.results.comparing import check_names, compared_metrics, summarized_columns
from cotrail.services.results.comparison import Outcome, by_outcome, counts_of, paired_scores
from cotrail.services.results.reasoning import turns
from cotrail.services.results.reports.pages import ReportedStep, anchor_of, reported_step
from cotrail.services.results.steps import shown_steps
from cotrail.services.results.verdicts import Verdict, verdicts_on
from cotrail.services.runs.scores import shown_scores
from cotrail.services.store import reading


class PairedQuestion(Struct, frozen=True, kw_only=True):
    """A question with what both runs came to; key: its id."""

    key: str
    text: str
    first: Side
    second: Side


class PairedQuestions(Struct, frozen=True, kw_only=True):
    """Questions that two runs have, by outcome.

    names: that distinguish the runs, by id. metric: what decides. counts: the compared questions by outcome;
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


Limit = Annotated[int, Meta(ge=1, le=1000)]


@operation("comparisons.questions", "GET", "/comparisons/questions", Scope.READ)
def list_paired_questions(
    first: str,
    second: str,
    *,
    metric: str = "",
    outcome: Outcome = "differ",
    limit: Limit = 100,
    after: str | None = None,
    around: str | None = None,
) -> PairedQuestions:
    """List the questions of two runs by who answered them right, and say how many there are of each outcome.

    metric: what decides; the first main score that both runs have where none is named. after: the question behind which
    the list begins; around: one whose neighbours in the whole list are given, by id.
    """
    # Raises InputError where they share no question or no score, UnknownNameError without such a metric or question.
    names = [metric] if metric else []
    check_names(names)
    with reading() as connection:
        records = compared_records(connection, (first, second))
        ids = records[0].id, records[1].id
        shared = shared_questions(connection, {record.id: [record] for record in records})
        columns = {record.id: summarized_columns(connection, record) for record in records}
        decides, *_ = compared_metrics(columns, shared.compared, names)
        scores = paired_scores(columns[ids[0]], columns[ids[1]], decides.name, shared.compared)
        found = by_outcome(scores, decides.highest)
        keys = found[outcome]
        places = {key: place for place, key in enumerate(shared.compared)}
        begin = 0 if after is None else _behind(keys, places, after)
        page = keys[begin : begin + limit]
        return PairedQuestions(
            first=ids[0],
            second=ids[1],
            names=distinct_names(connection, ids),
            metric=decides,
            counts=counts_of(found),
            left_out=shared.left_out,
            shown=_shown(connection, ids, [shared.compared[key] for key in page], scores),
            after=page[-1] if begin + len(page) < len(keys) else None,
            **_neighbours(keys, places, around),
        )


# Two runs side by side on one question: their steps aligned, with the words and paragraphs that only one has.

LONGEST = 4000
"""Characters that are shown of a text; the question's own page has all of it."""

MARKED = "the marked words differ"
"""What is said of steps whose different texts stand next to each other."""


class SideStep(Struct, frozen=True, kw_only=True):
    """A step of one side.

    asked, text: those of the step in pieces, of which the other side doesn't have those that stand alone.
    alone: the anchors of the paragraphs found that the other run found at no step.
    """

    step: ReportedStep
    asked: Pieces = ()
    text: Pieces = ()
    alone: tuple[str, ...] = ()


class SideRow(Struct, frozen=True, kw_only=True):
    """Two steps of the same kind in the same place, or one where the other side has none.

    number: from 0; words: what is different between them, empty where nothing is.
    """

    number: int
    first: SideStep | None
    second: SideStep | None
    words: str


class SideAnswer(Struct, frozen=True, kw_only=True):
    """What a run came to; name: tells it apart from the other one; verdict: by what is published.

    reason: why the question failed or is blocked; ended_by: see `cotrail.core.history`; judged: what judges say.
    """

    run: str
    name: str
    system: str
    model: str
    status: str
    answer: str | None
    verdict: QuestionVerdict
    reason: Failure | None
    ended_by: str
    judged: tuple[Verdict, ...]
    steps: int


class SideBySide(Struct, frozen=True, kw_only=True):
    """A question in two runs.

    parting: the first row in which they differ, by its number, None where the traces are the same to the end.
    rows: some of all `total`, those from `start` on.
    """

    question_id: str
    question: str
    gold: tuple[str, ...]
    first: SideAnswer
    second: SideAnswer
    parting: Parting | None
    rows: tuple[SideRow, ...]
    start: int
    total: int


Pair = tuple[TracedStep | None, TracedStep | None]


def _aligned(ours: Sequence[TracedStep], theirs: Sequence[TracedStep]) -> Iterator[Pair]:
    """Steps of the same kind next to each other, in their order; the others alone."""
    one, other = 0, 0
    ends = (len(ours), len(theirs))
    for left, right in (*shared_places([each.kind for each in ours], [each.kind for each in theirs]), ends):
        yield from ((step, None) for step in ours[one:left])
        yield from ((None, step) for step in theirs[other:right])
        if (left, right) != ends:
            yield ours[left], theirs[right]
        one, other = left + 1, right + 1


def _rows(
    records: Sequence[RunRecord],
    names: Mapping[str, str],
    traced: tuple[TracedQuestion, TracedQuestion],
    pairs: Sequence[Pair],
    start: int,
) -> Iterator[SideRow]:
    ours, theirs = traced
    left = _sides(records[0], ours, [first for first, _ in pairs], theirs)
    right = _sides(records[1], theirs, [second for _, second in pairs], ours)
    for number, (one, other) in enumerate(pairs, start):
        first, second = left.get(one.sequence) if one else None, right.get(other.sequence) if other else None
        if first and second:
            yield _both(number, *_differing(first, second), apart(one, other))
        else:
            only = names[records[0 if first else 1].id]
            yield SideRow(number=number, first=first, second=second, words=f"only {only} has such a step")


def _both(number: int, first: SideStep, second: SideStep, words: str) -> SideRow:
    is_marked = any(piece.alone for side in (first, second) for piece in (*side.asked, *side.text))
    quoted = "“" in words
    return SideRow(number=number, first=first, second=second, words=MARKED if is_marked and quoted else words)


def _sides(
    record: RunRecord, question: TracedQuestion, steps: Sequence[TracedStep | None], other: TracedQuestion
) -> dict[int, SideStep]:
    """These steps by their numbers, without marks in their texts; other: the question in the other run."""
    labels = turns(record, question)
    known = {anchor_of(hit.paragraph.digest) for step in other.steps for hit in step.hits}
    shown = shown_steps(replace(question, steps=tuple(filter(None, steps))))
    reported = (reported_step(each, turn=labels.get(each.sequence, "")) for each in shown)
    return {each.sequence: _side(each, known) for each in reported}


def _side(step: ReportedStep, known: Collection[str]) -> SideStep:
    short = replace(step, **{name: _shortened(getattr(step, name)) for name in ("asked", "text", "thoughts", "note")})
    return SideStep(
        step=short,
        asked=_whole(short.asked),
        text=_whole(short.text),
        alone=tuple(each.anchor for each in step.found if each.anchor not in known),
    )


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _whole(text: str) -> Pieces:
    return (Piece(text=text),) if text else ()


def _differing(first: SideStep, second: SideStep) -> tuple[SideStep, SideStep]:
    """Both with the words marked that the other doesn't have."""
    asked = word_differences(first.step.asked, second.step.asked)
    text = word_differences(first.step.text, second.step.text)
    return replace(first, asked=asked[0], text=text[0]), replace(second, asked=asked[1], text=text[1])


def _answer(connection: Connection, record: RunRecord, traced: TracedQuestion, name: str) -> SideAnswer:
    scores = {} if traced.judged else shown_scores(record, traced)
    return SideAnswer(
        run=record.id,
        name=name,
        system=record.system,
        model=record.model_name,
        status=traced.status,
        answer=traced.answer,
        verdict=verdict_of(traced, details_of(record, traced), scores) if scores else "unscored",
        reason=traced.reason,
        ended_by=traced.ended_by,
        judged=verdicts_on(connection, record, traced.key),
        steps=len(traced.steps),
    )


Rows = Annotated[int, Meta(ge=1, le=200)]
Start = Annotated[int, Meta(ge=0)]


@operation("comparisons.question", "GET", "/comparisons/questions/{question}", Scope.READ)
def show_side_by_side(question: str, first: str, second: str, *, start: Start = 0, limit: Rows = 20) -> SideBySide:
    """Show two runs side by side on one question: their steps aligned, and what only one of them has.

    question: its id or, where none has it, its number in the first run, from 1. start: the row that is shown first.
    """
    # Raises InputError where it has other words in the second run, UnknownNameError where that hasn't got it.
    with reading() as connection:
        records = compared_records(connection, (first, second))
        ours = read_question(connection, records[0].id, question)
        theirs = read_question(connection, records[1].id, ours.key)
        if ours.text != theirs.text:
            raise InputError(
                f"question {ours.key!r} has other words in the runs {records[0].id} and {records[1].id}, "
                f"{first_difference(ours.text, theirs.text, QUOTED_QUESTION)}; compare runs on the same questions"
            )
        names = distinct_names(connection, [record.id for record in records])
        pairs = list(_aligned(ours.steps, theirs.steps))
        sides = zip(records, (ours, theirs), strict=True)
        answers = [_answer(connection, record, traced, names[record.id]) for record, traced in sides]
        return SideBySide(
            question_id=ours.key,
            question=ours.text,
            gold=ours.answers,
            first=answers[0],
            second=answers[1],
            parting=parting(ours, theirs),
            rows=tuple(_rows(records, names, (ours, theirs), pairs[start : start + limit], start)),
            start=start,
            total=len(pairs),
        )
