"""Forking a run: a new run takes over the first steps of each question, and computes only what follows.

Steps are copied, each with the id of the step that computed it, so the new run's record is complete in itself.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from operator import attrgetter
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, Insert, insert

from cotrail.audit.records import QUESTION_OPENED, head_of
from cotrail.common.structs import common_fields
from cotrail.core.edits import Point, Points, StepEdit, check_edit, steps_before
from cotrail.core.history import FORK, GIVEN, Failed, Finished, Next, Recorded, Step
from cotrail.core.replay import advance, agreement
from cotrail.errors import BlockedError, InputError, ReplayMismatchError, UnknownNameError
from cotrail.models.commands.submission import Submission, insert_run, open_run, record_questions
from cotrail.models.records.advancing import begin_questions
from cotrail.models.records.budgets import check_quota, lock_quota
from cotrail.models.records.contents import ParagraphCache
from cotrail.models.records.idempotency import claim_key
from cotrail.models.records.questions import MOST_REPLAYED, binding_of, question_of
from cotrail.models.records.runs import FindSystem, RunBasics, RunPlan, Runs
from cotrail.models.records.steps import RECORD, read_records
from cotrail.models.schema.base import Rows, recordset
from cotrail.models.schema.database import notify
from cotrail.models.schema.seals import amending, step_digest
from cotrail.models.schema.states import DesiredState, QuestionStatus, StepState
from cotrail.models.schema.tables import attempts, made_paragraphs, paragraph_sets, questions, runs, sentences, steps


class Forked(Struct, frozen=True, kw_only=True):
    """The size of a fork: its questions, and the steps taken over; whole: the questions whose answers are too."""

    questions: int
    adopted: int
    whole: int


class Prefix(Struct, frozen=True, kw_only=True):
    """The steps of a question that are taken over: how many, whether as given, and whether they lead to its answer.

    following: the step at the point where the question is forked; None where the system asks for none there yet.
    """

    count: int
    given: bool
    whole: bool
    following: Step | None


_ENDED = (StepState.FINISHED, StepState.FAILED)
_HISTORY = (
    sa.select(steps.c.question_id, steps.c.previous, *RECORD)
    .where(steps.c.question_id == sa.func.any(sa.bindparam("ids", type_=ARRAY(sa.BigInteger))))
    .order_by(steps.c.question_id, steps.c.sequence)
)

_pairs = recordset(
    sa.column("origin", sa.BigInteger),
    sa.column("question", sa.BigInteger),
    sa.column("count", sa.BigInteger),
    sa.column("worker", sa.Text),
)
_old, _new = steps.alias("old"), steps.alias("new")
_AS_THEY_WERE = (
    *("sequence", "edit", "kind", "fingerprint", "request", "result", "failure"),
    *("prompt_tokens", "cached_prompt_tokens", "generated_tokens", "milliseconds", "previous"),
)
_taken_over: dict[str, sa.ColumnElement[Any]] = {
    **{name: _old.c[name] for name in _AS_THEY_WERE},
    "run_id": sa.bindparam("run", type_=sa.Text),
    "question_id": _pairs.c.question,
    "adopted_from": sa.func.coalesce(_old.c.adopted_from, _old.c.id),
    "state": _old.c.state,
    "epoch": sa.literal(1),
    "worker": sa.func.coalesce(sa.case((_old.c.worker == GIVEN, GIVEN)), _pairs.c.worker),
    "started_at": sa.func.now(),
    "finished_at": sa.func.now(),
}
_COPY_STEPS = (
    insert(steps)
    .from_select(
        list(_taken_over),
        sa.select(*_taken_over.values())
        .where(_old.c.question_id == _pairs.c.origin, _old.c.sequence < _pairs.c.count, _old.c.state.in_(_ENDED))
        .order_by(_pairs.c.question, _old.c.sequence),
    )
    .returning(steps.c.id, steps.c.question_id, steps.c.sequence, steps.c.previous)
)
"""Copies steps without sealing them; `previous`, still the origin's, shows which were yielded together."""

_heads = recordset(steps.c.id, steps.c.previous)
_sealed: dict[str, Any] = {"previous": _heads.c.previous}
_SEAL = (
    sa.update(steps)
    .where(steps.c.id == _heads.c.id)
    .values(_sealed | {"digest": step_digest(_sealed)})
    .returning(steps.c.question_id, steps.c.sequence, steps.c.digest)
)
_EXECUTED = ("step_id", "epoch", "worker", "started_at", "ended_at", "outcome")
_COPY_ATTEMPTS = insert(attempts).from_select(
    _EXECUTED,
    sa.select(steps.c.id, steps.c.epoch, steps.c.worker, steps.c.started_at, steps.c.finished_at, steps.c.state).where(
        steps.c.question_id == _pairs.c.question
    ),
)


def _belonging(table: sa.Table) -> Insert:
    """Return the statement that copies a table's rows of the steps taken over."""
    own = [each.name for each in table.c if each.name not in ("step_id", "question_id")]
    copied = sa.select(_new.c.id, _new.c.question_id, *(table.c[name] for name in own)).where(
        _old.c.question_id == _pairs.c.origin,
        _new.c.question_id == _pairs.c.question,
        _new.c.sequence == _old.c.sequence,
        table.c.step_id == _old.c.id,
    )
    return insert(table).from_select(["step_id", "question_id", *own], copied)


_EDIT = (
    sa.update(steps)
    .where(steps.c.question_id == sa.bindparam("question"), steps.c.sequence == sa.bindparam("place"))
    .values(edit=sa.bindparam("edit", type_=JSONB))
)
_COPY_SENTENCES, _COPY_SETS = _belonging(sentences), _belonging(paragraph_sets)
_COPY_REFERENCES = insert(made_paragraphs).from_select(
    ["question_id", "digest"],
    sa.select(_pairs.c.question, made_paragraphs.c.digest).where(made_paragraphs.c.question_id == _pairs.c.origin),
)


def fork(
    engine: sa.Engine,
    submission: Submission,
    at: Point | Points | None,
    find_system: FindSystem,
    keys: Collection[str] = (),
    edit: StepEdit | None = None,
) -> Forked:
    """Record a run that takes over steps of `submission.origin`, and wake maintenance.

    at: where the fork's own steps begin, in every question or in each of `keys`. Those before are taken over as given,
        whatever the fork's settings would ask for. Without it, the steps are taken over for which the fork's settings
        ask for exactly the same.
    keys: the questions to fork; all of them where it is empty.
    edit: what replaces a part of the step at the point, of the only question.
    Only steps that have ended are taken over, and none whose failure ended its question.
    Raises UnknownNameError, InputError where the system can't continue from there, QuotaExceededError, and MadeBefore
    where the connection's request was carried out before.
    """
    plans = Runs(find_system)
    with engine.begin() as connection:
        claim_key(connection, [submission.id])
        quota = lock_quota(connection)
        rows = _origin_questions(connection, submission, keys)
        prefixes = _prefixes(connection, _plan(submission), rows, at, plans)
        edited = None if edit is None else _edited_step(edit, *prefixes.values())
        insert_run(connection, submission, len(rows))  # always new: a fork belongs to no experiment
        opened = open_run(connection, submission)
        for start in range(0, len(rows), MOST_REPLAYED):
            chunk = list(enumerate(rows[start : start + MOST_REPLAYED], start=start))
            new = [
                {name: row[name] for name in QUESTION_OPENED} | {"run_id": submission.id, "position": position}
                for position, row in chunk
            ]
            ids = record_questions(connection, new, opened)
            pairs = []
            for each in ids:
                origin = rows[each.position]["id"]
                worker = GIVEN if prefixes[origin].given else FORK
                count = prefixes[origin].count
                pairs.append({"origin": origin, "question": each.id, "count": count, "worker": worker})
            _take_over(connection, submission.id, pairs, {each.id: each.opened for each in ids})
            begin_questions(connection, plans, [each.id for each in ids])
            if edited is not None:
                _edit(connection, ids[0].id, edited, edit)
        check_quota(connection, quota, [submission.provenance])
        notify(connection, submission.id)
    return Forked(
        questions=len(rows),
        adopted=sum(prefix.count for prefix in prefixes.values()),
        whole=sum(prefix.whole for prefix in prefixes.values()),
    )


def _origin_questions(
    connection: sa.Connection, submission: Submission, keys: Collection[str]
) -> Sequence[sa.RowMapping]:
    """Return the origin's questions that the fork asks, after locking the origin against removal."""
    origin = (
        # FOR KEY SHARE: pruning, which locks FOR UPDATE, waits for the fork; commands on the run don't.
        sa.select(runs.c.desired_state).where(runs.c.id == submission.origin).with_for_update(read=True, key_share=True)
    )
    if connection.execute(origin).scalar() in (None, DesiredState.PRUNED):
        raise UnknownNameError(f"run {submission.origin} is being removed; fork another one")
    of_run = sa.select(questions).where(questions.c.run_id == submission.origin).order_by(questions.c.position)
    rows = connection.execute(of_run).mappings().all()
    unknown = sorted(set(keys) - {row["key"] for row in rows})
    if unknown:
        raise UnknownNameError(
            f"run {submission.origin} has no question {unknown[0]!r}; `cotrail trace` takes their ids"
        )
    return [row for row in rows if not keys or row["key"] in keys]


def _plan(submission: Submission) -> RunPlan:
    """Return the fork's plan before it is recorded: how much it takes over decides what is recorded."""
    facts = common_fields(submission, RunBasics)
    return RunPlan(**facts, shots=submission.shots, binding=submission.binding, shared_in=None)


def _prefixes(
    connection: sa.Connection, plan: RunPlan, rows: Sequence[sa.RowMapping], at: Point | Points | None, runs: Runs
) -> dict[int, Prefix]:
    """Return the prefix taken over of each question, by its id in the origin."""
    if isinstance(at, int | str):
        _check_point(connection, rows, at)
    prefixes, paragraphs = {}, ParagraphCache()
    for start in range(0, len(rows), MOST_REPLAYED):
        chunk = rows[start : start + MOST_REPLAYED]
        recorded = connection.execute(_HISTORY, {"ids": [row["id"] for row in chunk]}).mappings().all()
        histories: dict[int, list[tuple[sa.RowMapping, Recorded]]] = defaultdict(list)
        for step, record in zip(recorded, read_records(connection, recorded, paragraphs), strict=True):
            histories[step["question_id"]].append((step, record))
        for row in chunk:
            point = at[row["key"]] if isinstance(at, Mapping) else at
            prefixes[row["id"]] = _prefix(plan, row, histories[row["id"]], point, runs)
    return prefixes


def _check_point(connection: sa.Connection, rows: Sequence[sa.RowMapping], at: Point) -> None:
    """Raise InputError where no question has a step at the point, so that everything would be taken over."""
    of_questions = steps.c.question_id == sa.func.any(sa.bindparam("ids", type_=ARRAY(sa.BigInteger)))
    query = sa.select(sa.func.max(steps.c.sequence) + 1, sa.func.array_agg(steps.c.kind.distinct())).where(of_questions)
    longest, kinds = connection.execute(query, {"ids": [row["id"] for row in rows]}).one()
    if isinstance(at, str) and at not in kinds:
        raise InputError(f"no question has a {at} step to fork at; there are: {', '.join(kinds)}")
    # The step to come of a question that has no answer yet is a point too.
    to_come = any(row["status"] != QuestionStatus.FINISHED for row in rows)
    if isinstance(at, int) and not -longest <= at < longest + to_come:
        raise InputError(
            f"no question has a step {at} to fork at; the longest has steps 0 to {longest - 1}, or -1 to {-longest} "
            "counted from the end"
        )


def _prefix(
    plan: RunPlan, row: sa.RowMapping, history: Sequence[tuple[sa.RowMapping, Recorded]], at: Point | None, runs: Runs
) -> Prefix:
    rows = [step for step, _ in history]
    before = len(rows) if at is None else steps_before(at, [step["kind"] for step in rows])
    records = tuple(_ended((record for _, record in history[:before]), given=at is not None))
    system, binding = plan.open(question_of(row), runs.find_system), binding_of(row, plan)
    try:
        if at is None:
            records = records[: agreement(system, records, binding)]
        outcome = advance(system, records, binding)
        if isinstance(outcome, Failed):
            # A failure that ended its question isn't taken over: the fork tries that step itself.
            records = records[: _first_failure(rows[: len(records)])]
    except ReplayMismatchError as error:
        raise InputError(
            f"question {row['key']} can't be forked there: at step {error.sequence} the record has {error.recorded}, "
            f"and with these settings the system asks for {error.yielded}; fork at an earlier step"
        ) from error
    except BlockedError as error:
        raise InputError(f"question {row['key']} can't be forked there: {error}") from error
    following = outcome.steps[0] if isinstance(outcome, Next) and outcome.steps and len(records) == before else None
    return Prefix(count=len(records), given=at is not None, whole=isinstance(outcome, Finished), following=following)


def _edited_step(edit: StepEdit, prefix: Prefix) -> int:
    """Return which step of a question is edited; raises InputError where it can't be."""
    if prefix.following is None:
        raise InputError(
            "there is no step to edit: the system asks for none there, or not all steps before it have ended; name "
            "one that `cotrail trace` shows"
        )
    check_edit(prefix.following.action, edit)
    return prefix.following.sequence


def _edit(connection: sa.Connection, question_id: int, place: int, edit: StepEdit | None) -> None:
    """Record how a step was edited that no worker can have seen yet."""
    amending(connection)
    connection.execute(_EDIT, {"question": question_id, "place": place, "edit": msgspec.to_builtins(edit)})


def _ended(history: Iterable[Recorded], *, given: bool) -> Iterator[Recorded]:
    """Yield the steps before the first that hasn't ended."""
    for record in history:
        if record.outcome is None:
            return
        yield replace(record, given=given or record.given)


def _first_failure(history: Sequence[sa.RowMapping]) -> int:
    """Return the place of the first failed step among those that the system yielded last."""
    last = history[-1]["previous"]
    failed = (n for n, step in enumerate(history) if step["previous"] == last and step["state"] == StepState.FAILED)
    return next(failed, len(history))


def _take_over(connection: sa.Connection, run_id: str, pairs: Rows, opened: Mapping[int, str]) -> None:
    """Copy steps with all rows that belong to them, and seal them."""
    copied = connection.execute(_COPY_STEPS, {"rows": pairs, "run": run_id}).all()
    # `cotrail retry` may have opened steps again since they were replayed here, and these weren't copied.
    if len(copied) != sum(pair["count"] for pair in pairs):
        raise InputError("steps of the run were opened again meanwhile; fork it again")
    _seal(connection, copied, opened)
    for statement in (_COPY_ATTEMPTS, _COPY_SENTENCES, _COPY_SETS, _COPY_REFERENCES):
        connection.execute(statement, {"rows": pairs})


def _seal(connection: sa.Connection, copied: Sequence[sa.Row[Any]], opened: Mapping[int, str]) -> None:
    """Compute the digests of the copied steps.

    A step's digest covers its question's head before it, and so the digests of all earlier steps. Steps that were
    yielded together share a head: one statement seals one such batch of every question at a time.
    """
    amending(connection)
    batches: list[list[list[int]]] = []
    ordered = sorted(copied, key=attrgetter("question_id", "sequence"))
    for _, of_question in groupby(ordered, key=attrgetter("question_id")):
        batches.append([[step.id for step in batch] for _, batch in groupby(of_question, key=attrgetter("previous"))])
    questions_of = {step.id: step.question_id for step in copied}
    digests: dict[int, list[str]] = defaultdict(list)
    for together in zip_longest(*batches, fillvalue=()):
        ids = [step_id for batch in together for step_id in batch]
        heads = {key: head_of(opened[key], digests[key]) for key in {questions_of[step_id] for step_id in ids}}
        rows = [{"id": step_id, "previous": heads[questions_of[step_id]]} for step_id in ids]
        sealed = connection.execute(_SEAL, {"rows": rows})
        for question, _, digest in sorted(sealed, key=lambda step: step.sequence):
            digests[question].append(digest)
