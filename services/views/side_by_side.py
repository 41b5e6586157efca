"""Two runs side by side on one question: their steps aligned, with the words and paragraphs that only one has."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.common.shared_places import shared_places
from cotrail.common.word_differences import Piece, Pieces, word_differences
from cotrail.core.results import Failure
from cotrail.errors import InputError
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion, TracedStep, read_question
from cotrail.services.views.answer_details import details_of
from cotrail.services.views.comparing_questions import compared_records
from cotrail.services.views.comparing_traces import Parting, apart, parting
from cotrail.services.views.distinct_names import distinct_names
from cotrail.services.views.reasoning_trees import turns
from cotrail.services.views.reports.paragraph_links import anchor_of
from cotrail.services.views.reports.reported_steps import ReportedStep, reported_step
from cotrail.services.views.run_verdicts import Verdict, verdicts_on
from cotrail.services.views.scored_questions import scores_of
from cotrail.services.views.shown_steps import shown_steps
from cotrail.services.views.verdicts import Verdict as Standing
from cotrail.services.views.verdicts import verdict_of

LONGEST = 4000
"""Characters that are shown of a text; the question's own page has all of it."""

MARKED = "the marked words differ"
"""What is said of steps whose different texts stand beside each other."""


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

    reason: why the question failed or is blocked; ended_by: see `cotrail.core.ended_by`; judged: what judges say.
    """

    run: str
    name: str
    system: str
    model: str
    status: str
    answer: str | None
    verdict: Standing
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


def side_by_side(connection: Connection, runs: tuple[str, str], question: str, *, start: int, limit: int) -> SideBySide:
    """The question in both runs as it stands, with up to `limit` rows from that number on.

    question: its id or, where none has it, its number in the first run, from 1. Raises InputError where it has other
    words in the second run, UnknownNameError where that hasn't got it.
    """
    records = compared_records(connection, runs)
    ours = read_question(connection, records[0].id, question)
    theirs = read_question(connection, records[1].id, ours.key)
    if ours.text != theirs.text:
        raise InputError(
            f"question {ours.key!r} has other words in {records[1].id}; compare runs on the same questions"
        )
    names = distinct_names(connection, [record.id for record in records])
    pairs = list(_aligned(ours.steps, theirs.steps))
    first, second = (
        _answer(connection, record, traced, names[record.id])
        for record, traced in zip(records, (ours, theirs), strict=True)
    )
    return SideBySide(
        question_id=ours.key,
        question=ours.text,
        gold=ours.answers,
        first=first,
        second=second,
        parting=parting(ours, theirs),
        rows=tuple(_rows(records, names, (ours, theirs), pairs[start : start + limit], start)),
        start=start,
        total=len(pairs),
    )


Pair = tuple[TracedStep | None, TracedStep | None]


def _aligned(ours: Sequence[TracedStep], theirs: Sequence[TracedStep]) -> Iterator[Pair]:
    """Steps of the same kind beside each other, in their order; the others alone."""
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
    scores = {} if traced.judged else scores_of(record, traced)
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
