"""What became of questions, as far as scores need it: answers and collected paragraphs, without the steps.

Which questions of a run that is under way end first depends on them: the short ones do. So scores so far are those of a
prefix: of the questions before the first, by position, that has no end yet, whenever those behind it ended.
"""

import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, takewhile
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import TEXT, BigInteger, Connection, Row, Text, bindparam, case, cast, exists, func, or_, select, true
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.core.money import Usage
from cotrail.core.questions import GoldParagraph, Paragraph, read_kinds
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.models.queries.traces import QuestionFacts, read_traced
from cotrail.models.records.contents import ParagraphCache
from cotrail.models.records.projects import project_of
from cotrail.models.records.questions import read_question_ids
from cotrail.models.schema.states import QuestionStatus, StepState
from cotrail.models.schema.tables import paragraph_sets, questions, runs, steps

CHUNK_QUESTIONS = 2000
"""The number of questions read at once."""

PREFIX_QUESTIONS = 200
"""The same of a run that is under way."""

ASKED = (QuestionStatus.FINISHED, QuestionStatus.FAILED)
"""The statuses of questions that were asked to their end."""

MOST_CACHED = 200_000
"""The number of paragraphs kept for the questions to come; about 200 MB."""


class Outcome(QuestionFacts, frozen=True, kw_only=True):
    """A question as it stands: what scores take of a `TracedQuestion`.

    paragraphs: those collected; their ids are those of the corpus where gold paragraphs are named by ids alone.
    """

    stated: str = ""
    paragraphs: tuple[Paragraph, ...] = ()


def leading(statuses: Iterable[str]) -> int:
    """The length of a run's prefix (`Prefix`); statuses: of its questions, by position."""
    return sum(1 for _ in takewhile(ASKED.__contains__, statuses))


_ids = bindparam("ids", type_=ARRAY(BigInteger))

_stated = questions.c.weighing["stated"]
_QUESTIONS = (
    select(
        *(questions.c[name] for name in ("id", "key", "kind", "status", "answer", "ended_by")),
        *(cast(questions.c[name], TEXT).label(name) for name in ("answers", "gold", "pinned", "collected")),
        case((func.jsonb_typeof(_stated) == "string", _stated.astext), else_="").label("stated"),
    )
    .where(questions.c.id == func.any(_ids))
    .order_by(questions.c.position)
)
_of_questions = paragraph_sets.c.question_id == func.any(_ids)
_FOUND = (
    select(paragraph_sets.c.question_id, paragraph_sets.c.digest, paragraph_sets.c.paragraph_id)
    .where(_of_questions)
    # Backwards, since of equal keys the last one stays in a dict: the first time that a paragraph was found.
    .order_by(paragraph_sets.c.step_id.desc(), paragraph_sets.c.rank.desc())
)
_SEARCHED = select(paragraph_sets.c.question_id).where(_of_questions).distinct()
_digest = func.jsonb_array_elements_text(questions.c.collected).table_valued("value").render_derived("collected")
_found_so = paragraph_sets.c.question_id == questions.c.id, paragraph_sets.c.digest == _digest.c.value, _of_questions
_MADE = (
    select(questions.c.id, _digest.c.value)
    .join_from(questions, _digest, true())
    .where(questions.c.id == func.any(_ids), ~exists().where(*_found_so))
)
_kinds = lru_cache(read_kinds)
_texts = msgspec.json.Decoder(tuple[str, ...])
_gold = msgspec.json.Decoder(tuple[GoldParagraph, ...])
_pinned = msgspec.json.Decoder(GoldParagraph)


def outcomes_of(connection: Connection, ids: Sequence[int]) -> Iterator[Outcome]:
    """Yield the questions of these ids, a chunk of them after the other, in each by position."""
    paragraphs = ParagraphCache(MOST_CACHED)
    for start in range(0, len(ids), CHUNK_QUESTIONS):
        yield from _read(connection, list(ids[start : start + CHUNK_QUESTIONS]), paragraphs)


def _read(connection: Connection, ids: Sequence[int], cache: ParagraphCache) -> Iterator[Outcome]:
    rows = connection.execute(_QUESTIONS, {"ids": ids}).all()
    collected = {row.id: _texts.decode(row.collected) for row in rows if row.collected is not None}
    so_far = _collected_so_far(connection, [row.id for row in rows if row.collected is None])
    for question, made in connection.execute(_MADE, {"ids": list(collected)}).all():
        collected[question] = tuple(each for each in collected[question] if each != made)
    known = cache.read(connection, chain.from_iterable(collected.values()))
    gold = {row.id: _gold.decode(row.gold) for row in rows}
    by_id = [each for each in collected if any(paragraph.by == "id" for paragraph in gold[each])]
    in_corpus = {tuple(found): name for *found, name in connection.execute(_FOUND, {"ids": by_id})} if by_id else {}
    for row in rows:
        paragraphs = tuple(filter(None, map(known.get, collected.get(row.id, ()))))
        if in_corpus:
            paragraphs = tuple(replace(each, id=in_corpus.get((row.id, each.id), each.id)) for each in paragraphs)
        yield _outcome(row, gold[row.id], so_far.get(row.key) or paragraphs)


def _collected_so_far(connection: Connection, ids: Sequence[int]) -> dict[str, tuple[Paragraph, ...]]:
    """What questions that haven't finished have collected, by their keys; only their steps tell."""
    # Most open questions haven't searched yet, and reading the steps of all would take long.
    searched = connection.execute(_SEARCHED, {"ids": ids}).scalars().all() if ids else ()
    return {each.key: each.paragraphs for each in read_traced(connection, searched)} if searched else {}


def _outcome(row: Row[*tuple[Any, ...]], gold: tuple[GoldParagraph, ...], paragraphs: tuple[Paragraph, ...]) -> Outcome:
    return Outcome(
        key=row.key,
        answers=_texts.decode(row.answers),
        gold=gold,
        pinned=None if row.pinned is None else _pinned.decode(row.pinned),
        kinds=_kinds(row.kind),
        status=row.status,
        answer=row.answer if row.status == QuestionStatus.FINISHED else None,
        stated=row.stated,
        ended_by=row.ended_by or "",
        paragraphs=paragraphs,
    )


_ENDED = select(questions.c.id).where(questions.c.id == func.any(_ids), questions.c.status.in_(ASKED))


class Prefix:
    """The prefix of a run's questions that are finished or failed, and their scores by some metrics.

    questions: how many these are; scores: of each, by the metric, None where it doesn't have it.
    """

    def __init__(self, run_id: str, score: Callable[[Outcome], QuestionScores], metrics: Iterable[str]) -> None:
        self.scores: dict[str, list[float | None]] = {name: [] for name in metrics}
        self.questions = 0
        self._run = run_id
        self._score = score
        self._ids: array[int] | None = None

    def advance(self, connection: Connection, seconds: float) -> None:
        """Score the questions that have ended since; after so many seconds, those behind them are left for later."""
        until = time.monotonic() + seconds
        if self._ids is None:
            self._ids = read_question_ids(connection, self._run)
        while asked := self._ids[self.questions : self.questions + PREFIX_QUESTIONS].tolist():
            ended = set(connection.execute(_ENDED, {"ids": asked}).scalars())
            self._add(connection, list(takewhile(ended.__contains__, asked)))
            # The prefix ends at the first question without an end, whatever stands behind it.
            if len(ended) < len(asked) or time.monotonic() >= until:
                return

    def _add(self, connection: Connection, ids: Sequence[int]) -> None:
        for each in list(outcomes_of(connection, ids)):  # all of them or, where the database goes away, none
            for name, score in self._score(each).items():
                self.scores[name].append(score)
        self.questions += len(ids)


# Means of earlier runs: what a finished question took, for estimates.

LATEST_RUNS = 5
"""The number of latest runs that are measured: settings and models change with time."""


class Measured(Struct, frozen=True, kw_only=True):
    """What the finished questions of earlier runs took together, where it was computed for them or adopted.

    model: whose runs they are; empty where they are of several.
    """

    model: str
    runs: int
    questions: int
    steps: int
    usage: Usage


def read_measured(connection: Connection, *, system: str, version: int, dataset: str, model: str) -> Measured | None:
    """Return what earlier runs of a system on a dataset took, with this model or else any; None where there is none."""
    asked = {"system": system, "version": version, "dataset": dataset, "project": project_of(connection)}
    for name in (model, None):
        row = connection.execute(_MEASURED, {**asked, "model": name}).mappings().one()
        if row["questions"]:
            usage = Usage(**{each: int(row[each]) for each in Usage.__struct_fields__})
            return Measured(
                model=name or "", runs=row["runs"], questions=row["questions"], steps=row["steps"], usage=usage
            )
    return None


def _sum(column: Any) -> Any:
    return func.coalesce(func.sum(column), 0)


_model, _project = bindparam("model", type_=Text), bindparam("project", type_=Text)
_latest = (
    select(runs.c.id)
    .where(
        runs.c.system == bindparam("system"),
        runs.c.system_version == bindparam("version"),
        runs.c.dataset == bindparam("dataset"),
        or_(_model.is_(None), runs.c.model_name == _model),
        or_(_project.is_(None), runs.c.project == _project),
        # Closed ones: the questions that are finished first are the short ones.
        runs.c.digest.is_not(None),
    )
    .order_by(runs.c.created_at.desc(), runs.c.id.desc())
    .limit(LATEST_RUNS)
)
_ended = steps.c.state.in_([StepState.FINISHED, StepState.FAILED])
_MEASURED = (
    select(
        func.count(questions.c.run_id.distinct()).label("runs"),
        func.count(questions.c.id.distinct()).label("questions"),
        func.count(steps.c.id).label("steps"),
        func.count(steps.c.prompt_tokens).label("calls"),
        _sum(steps.c.prompt_tokens).label("input_tokens"),
        _sum(steps.c.cached_prompt_tokens).label("cached_tokens"),
        _sum(steps.c.result["cache_written_tokens"].astext.cast(BigInteger)).label("cache_written_tokens"),
        _sum(steps.c.generated_tokens).label("output_tokens"),
        _sum(steps.c.result["thought_tokens"].astext.cast(BigInteger)).label("thought_tokens"),
        func.count(steps.c.result["estimated"].astext).label("estimated"),
    )
    .join_from(questions, steps, steps.c.question_id == questions.c.id)
    .where(
        questions.c.run_id.in_(_latest),
        questions.c.status == QuestionStatus.FINISHED,
        questions.c.halted.is_(None),  # by a budget, which another run may not have
        _ended,
    )
)
