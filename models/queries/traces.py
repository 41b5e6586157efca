"""Traces of questions: each step, what it found or wrote, and the exact prompt that it was given."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, RowMapping, func, select
from sqlalchemy.exc import NoResultFound

from cotrail.audit.records import UNREADABLE
from cotrail.core.actions.generate import Prompted, seen_prompt
from cotrail.core.actions.kind import UnreadAction, UnreadResult, digests_in
from cotrail.core.actions.registry import KINDS
from cotrail.core.demonstrations import Stored
from cotrail.core.edits import StepEdit, edited, read_edit
from cotrail.core.history import by_failure
from cotrail.core.questions import GoldParagraph, Hit, JudgedAnswer, Paragraph, read_kinds
from cotrail.core.results import Failure, Generated, Result, Retrieved
from cotrail.core.system import Action
from cotrail.errors import CotrailError, InputError, UnknownNameError, UnreadableError
from cotrail.models.records.contents import ParagraphCache, read_demonstrations
from cotrail.models.records.projects import in_project
from cotrail.models.records.questions import read_question_ids
from cotrail.models.records.steps import HITS, read_result
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import attempts, questions, runs, sentences, steps

CHUNK_QUESTIONS = 100
"""The number of questions read at once."""

_COLUMNS = ("sequence", "kind", "state", "worker", "attempts", "milliseconds", "started_at", "finished_at")


class Collected(Struct, frozen=True, kw_only=True):
    """A paragraph that a question collected, and the search that first found it: step, query, rank and score."""

    paragraph: Paragraph
    step: int
    query: str
    rank: int
    score: float


class StepFacts(Struct, frozen=True, kw_only=True):
    """What steps of every kind have.

    milliseconds: how long the last execution took; None before its end.
    attempts: how many executions there were, this one included; adopted: whether another run computed the result.
    edit: what a person put in the place of a part of it.
    """

    sequence: int
    kind: str
    state: str
    worker: str | None
    attempts: int
    milliseconds: float | None
    adopted: bool = False
    failure: Failure | None = None
    edit: StepEdit | None = None


class TracedStep(StepFacts, frozen=True, kw_only=True):
    """A step as it was carried out.

    action: the one that the system asked for, of which a person may have edited a part.
    action, result: `UnreadAction` and `UnreadResult` where this version can't read them; no result: there is none yet.
    batch: equal for the steps that the system asked for together.
    started_at, finished_at: of its last execution; None before that.
    """

    action: Action
    result: Result | None = None
    batch: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def carried_out(self) -> Action:
        """The action that was executed."""
        return self.action if isinstance(self.action, UnreadAction) else edited(self.action, self.edit)

    @property
    def query(self) -> str | None:
        """What a search was for; None for a step that finds no paragraphs."""
        kind = KINDS.get(self.kind)
        return getattr(self.carried_out, kind.query, None) if kind and kind.query else None

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The paragraphs that a search found."""
        return self.result.hits if isinstance(self.result, Retrieved) else ()


class QuestionFacts(Struct, frozen=True, kw_only=True):
    """What there is of a question with and without its steps: see `Question`.

    key: its id in the dataset; ended_by: what ended it: `cotrail.core.history`; empty where nothing did.
    """

    key: str
    answers: tuple[str, ...]
    gold: tuple[GoldParagraph, ...]
    pinned: GoldParagraph | None
    kinds: Mapping[str, str]
    status: str
    answer: str | None
    ended_by: str = ""


class TracedQuestion(QuestionFacts, frozen=True, kw_only=True):
    """A question with all that happened to it; of an unfinished one, sentences and paragraphs are those so far.

    details: of the answer, as JSON; `SystemSpec.details` is their type.
    judged: the answers of other runs that it grades, in a judge's run.
    """

    text: str
    reason: Failure | None
    sentences: tuple[str, ...]
    collected: tuple[Collected, ...]
    steps: tuple[TracedStep, ...]
    details: Any = None
    judged: tuple[JudgedAnswer, ...] = ()

    @property
    def paragraphs(self) -> tuple[Paragraph, ...]:
        """The collected paragraphs alone."""
        return tuple(each.paragraph for each in self.collected)

    @property
    def stated(self) -> str:
        """The span that an answer of several sentences states, by its details; empty where they have none."""
        answer = self.details.get("stated") if isinstance(self.details, dict) else None
        return answer if isinstance(answer, str) else ""


def read_questions(connection: Connection, run_id: str) -> Iterator[TracedQuestion]:
    """Yield all questions of a run in their order."""
    ids, paragraphs = read_question_ids(connection, run_id), ParagraphCache()
    for start in range(0, len(ids), CHUNK_QUESTIONS):
        yield from read_traced(connection, ids[start : start + CHUNK_QUESTIONS].tolist(), paragraphs)


def read_question(connection: Connection, run_id: str, key: str) -> TracedQuestion:
    """Return one question by the dataset's id or, where no question has it, by its number in the run, from 1."""
    return next(read_traced(connection, [find_question(connection, run_id, key)]))


def rebuild_prompt(connection: Connection, run_id: str, key: str, sequence: int) -> str:
    """Return the prompt of a step byte for byte as the model saw it; of a step without a result, as it was asked for.

    Raises InputError where there is no such step or it has no prompt; CotrailError where the store no longer holds what
    the model saw.
    """
    question_id = find_question(connection, run_id, key)
    try:
        return _rendered(connection, question_id, key, sequence)
    except (*UNREADABLE, NoResultFound) as error:
        raise CotrailError(
            f"the prompt of step {sequence} can't be rebuilt: what is recorded of it can't be read; "
            f"`cotrail audit verify {run_id}` names what was changed"
        ) from error


def _rendered(connection: Connection, question_id: int, key: str, sequence: int) -> str:
    condition = steps.c.question_id == question_id
    columns = (steps.c.kind, steps.c.request, steps.c.result, steps.c.edit, HITS)
    query = select(*columns).where(condition, steps.c.sequence == sequence)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        count = connection.execute(select(func.count()).select_from(steps).where(condition)).scalar_one()
        raise InputError(f"question {key} has no step {sequence}; its steps are 0 to {count - 1}")
    asked = KINDS[row["kind"]].read(row["request"], _stored(connection, [row], ParagraphCache()))
    action = edited(asked, read_edit(row["edit"]))
    if not isinstance(action, Prompted):
        raise InputError(f"step {sequence} is a {row['kind']} step and has no prompt; name one that asks a model")
    if row["result"] is None:
        return action.prompt.render()
    seen = msgspec.convert(row["result"], Generated)
    prompt = seen_prompt(action, seen)
    if prompt.digest != seen.prompt_digest:
        raise CotrailError(
            f"the prompt of step {sequence} can't be rebuilt: its SHA-256 is {prompt.digest}, "
            f"and the model saw {seen.prompt_digest}; check that the run's store is untouched"
        )
    return prompt.render()


def read_step(connection: Connection, question_id: int, sequence: int) -> TracedStep:
    """Return a step of the question with this id in the table; raises UnknownNameError."""
    found = _read_steps(connection, [question_id], ParagraphCache(), steps.c.sequence == sequence)[question_id]
    if not found:
        raise UnknownNameError(f"the question has no step {sequence}; `cotrail trace` lists its steps")
    return found[0]


def find_step(connection: Connection, step_id: int) -> tuple[str, str, int]:
    """Return the run, the question's key and the sequence of the step with that id; raises UnknownNameError."""
    of_step = select(questions.c.run_id, questions.c.key, steps.c.sequence).where(steps.c.id == step_id)
    of_question = of_step.join_from(steps, questions, steps.c.question_id == questions.c.id)
    of_run = of_question.join(runs, runs.c.id == questions.c.run_id).where(*in_project(connection, runs))
    row = connection.execute(of_run).one_or_none()
    if row is None:
        raise UnknownNameError(f"there is no step with the id {step_id}; name one by RUN QUESTION STEP instead")
    return row.run_id, row.key, row.sequence


def find_question(connection: Connection, run_id: str, key: str) -> int:
    """Return the id of a question given by its key or its number in the run, from 1; raises UnknownNameError."""
    of_run = select(questions.c.id).where(questions.c.run_id == run_id)
    # By the id first, as ids of a dataset may be numbers themselves.
    question_id = connection.execute(of_run.where(questions.c.key == key)).scalar()
    if question_id is None and key.isascii() and key.isdigit() and len(key) < 10:
        question_id = connection.execute(of_run.where(questions.c.position == int(key) - 1)).scalar()
    if question_id is None:
        first = connection.execute(
            select(questions.c.key).where(questions.c.run_id == run_id).order_by(questions.c.position).limit(3)
        ).scalars()
        raise UnknownNameError(
            f"run {run_id} has no question {key!r}; give its id (such as {', '.join(first)}) or its number from 1"
        )
    return int(question_id)


def read_traced(
    connection: Connection, ids: Sequence[int], paragraphs: ParagraphCache | None = None
) -> Iterator[TracedQuestion]:
    """Yield the questions of these ids by position, all of which are in memory meanwhile."""
    paragraphs = paragraphs or ParagraphCache()
    steps_of = _read_steps(connection, ids, paragraphs)
    sentences = _read_sentences(connection, ids)
    rows = connection.execute(select(questions).where(questions.c.id.in_(ids)).order_by(questions.c.position))
    for row in rows.mappings():
        yield _question(row, steps_of[row["id"]], sentences[row["id"]])


def _question(row: RowMapping, traced: Sequence[TracedStep], sentences: Sequence[str]) -> TracedQuestion:
    collected: dict[str, Collected] = {}
    for step in traced:
        for hit in step.hits:
            # Of several searches that found a paragraph, the first one counts.
            found = Collected(
                paragraph=hit.paragraph, step=step.sequence, query=step.query or "", rank=hit.rank, score=hit.score
            )
            collected.setdefault(hit.paragraph.digest, found)
    digests = row["collected"] if row["collected"] is not None else _collected_so_far(traced)
    reason = msgspec.convert(row["reason"], Failure | None)
    failed = by_failure(reason) if reason and row["status"] == QuestionStatus.FAILED else ""
    return TracedQuestion(
        key=row["key"],
        text=row["text"],
        answers=tuple(row["answers"]),
        gold=msgspec.convert(row["gold"], tuple[GoldParagraph, ...]),
        pinned=msgspec.convert(row["pinned"], GoldParagraph | None),
        kinds=read_kinds(row["kind"]),
        status=row["status"],
        answer=row["answer"] if row["status"] == QuestionStatus.FINISHED else None,
        reason=reason,
        sentences=tuple(sentences if row["sentences"] is None else row["sentences"]),
        collected=tuple(collected[digest] for digest in digests if digest in collected),
        steps=tuple(traced),
        details=row["weighing"],
        ended_by=row["ended_by"] or failed,
        judged=msgspec.convert(row["judged"] or (), tuple[JudgedAnswer, ...]),
    )


def _collected_so_far(traced: Sequence[TracedStep]) -> Iterable[str]:
    """Return the digests of the latest prompt's paragraphs, followed by those found since."""
    collected: dict[str, None] = {}
    for step in traced:
        if isinstance(step.action, Prompted):
            collected = dict.fromkeys(each.digest for each in step.action.prompt.paragraphs)
        collected |= dict.fromkeys(hit.paragraph.digest for hit in step.hits)
    return collected


def _stored(connection: Connection, rows: Iterable[RowMapping], paragraphs: ParagraphCache) -> Stored:
    """Return what the requests and hits of these rows refer to, as far as it is there."""
    digests = (
        digest for row in rows for digest in (*digests_in(row["request"]), *(hit[0] for hit in row["hits"] or ()))
    )
    return Stored(paragraphs.read(connection, digests), cache(partial(read_demonstrations, connection)))


def _read_steps(
    connection: Connection, ids: Sequence[int], paragraphs: ParagraphCache, *conditions: ColumnElement[bool]
) -> dict[int, list[TracedStep]]:
    executions = select(func.count()).where(attempts.c.step_id == steps.c.id).correlate(steps).scalar_subquery()
    query = (
        select(steps, executions.label("attempts"), HITS)
        .where(steps.c.question_id.in_(ids), *conditions)
        .order_by(steps.c.question_id, steps.c.sequence)
    )
    rows = connection.execute(query).mappings().all()
    stored, grouped = _stored(connection, rows, paragraphs), defaultdict(list)
    for row in rows:
        grouped[row["question_id"]].append(_step(row, stored))
    return grouped


def _step(row: RowMapping, stored: Stored) -> TracedStep:
    action, result = _carried_out(row, stored)
    common = {name: row[name] for name in _COLUMNS}
    return TracedStep(
        **common,
        adopted=row["adopted_from"] is not None,
        failure=msgspec.convert(row["failure"], Failure | None),
        edit=read_edit(row["edit"]),
        action=action,
        result=result,
        batch=row["previous"],
    )


def _carried_out(row: RowMapping, stored: Stored) -> tuple[Action, Result | None]:
    """Return a step's action and its result; as they are recorded where this version can't read them."""
    try:
        kind = KINDS[row["kind"]]
        action = kind.read(row["request"], stored)
        return action, None if row["result"] is None else read_result(kind, row, stored.paragraphs)
    except (*UNREADABLE, UnreadableError):
        result = None if row["result"] is None else UnreadResult(result=row["result"])
        return UnreadAction(request=row["request"]), result


def _read_sentences(connection: Connection, ids: Sequence[int]) -> dict[int, list[str]]:
    query = select(sentences.c.question_id, sentences.c.text).where(sentences.c.question_id.in_(ids))
    grouped = defaultdict(list)
    for question_id, text in connection.execute(query.order_by(sentences.c.question_id, sentences.c.position)):
        grouped[question_id].append(text)
    return grouped
