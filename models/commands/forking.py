"""Forking a run: a new one takes over the first steps of each question, and computes only what follows.

What is taken over is copied, each step with the id of the one that computed it; so the new run is a record of its own.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Engine,
    Row,
    RowMapping,
    Table,
    Text,
    bindparam,
    case,
    column,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, Insert, insert

from cotrail.audit.sealed_columns import QUESTION_OPENED, head_of
from cotrail.core.fork_points import FORK, GIVEN, Point, steps_before
from cotrail.core.replay import Failed, Recorded, advance, agreement
from cotrail.errors import BlockedError, InputError, ReplayMismatchError, UnknownNameError
from models.commands.chunks import wake
from models.commands.submission import Submission, record_questions, record_run
from models.execution.advancing import REPLAYED, advance_questions, asked, lock_questions
from models.records.histories import RECORD, read_records
from models.records.paragraphs import Paragraphs
from models.records.runs import RunPlan, Runs
from models.schema.rows import Rows, recordset
from models.schema.seals import amending, step_digest
from models.schema.tables import (
    RunState,
    StepState,
    attempts,
    made_paragraphs,
    paragraph_sets,
    questions,
    runs,
    sentences,
    steps,
)


class Forked(Struct, frozen=True, kw_only=True):
    """What a fork has: questions, and the steps that it took over."""

    questions: int
    adopted: int


class Prefix(Struct, frozen=True, kw_only=True):
    """How many steps of a question are taken over, and whether as given."""

    count: int
    given: bool


_ENDED = (StepState.FINISHED, StepState.FAILED)
_HISTORY = (
    select(steps.c.question_id, steps.c.previous, *RECORD)
    .where(steps.c.question_id == func.any(bindparam("ids", type_=ARRAY(BigInteger))))
    .order_by(steps.c.question_id, steps.c.sequence)
)

_pairs = recordset(
    column("origin", BigInteger), column("question", BigInteger), column("count", BigInteger), column("worker", Text)
)
_old, _new = steps.alias("old"), steps.alias("new")
_AS_THEY_WERE = (
    "sequence",
    "kind",
    "fingerprint",
    "request",
    "result",
    "failure",
    "prompt_tokens",
    "cached_prompt_tokens",
    "generated_tokens",
    "milliseconds",
    "previous",
)
_taken_over: dict[str, ColumnElement[Any]] = {
    **{name: _old.c[name] for name in _AS_THEY_WERE},
    "run_id": bindparam("run", type_=Text),
    "question_id": _pairs.c.question,
    "adopted_from": func.coalesce(_old.c.adopted_from, _old.c.id),
    "state": _old.c.state,
    "epoch": literal(1),
    "worker": func.coalesce(case((_old.c.worker == GIVEN, GIVEN)), _pairs.c.worker),
    "started_at": func.now(),
    "finished_at": func.now(),
}
_COPY_STEPS = (
    insert(steps)
    .from_select(
        list(_taken_over),
        select(*_taken_over.values())
        .where(_old.c.question_id == _pairs.c.origin, _old.c.sequence < _pairs.c.count, _old.c.state.in_(_ENDED))
        .order_by(_pairs.c.question, _old.c.sequence),
    )
    .returning(steps.c.id, steps.c.question_id, steps.c.sequence, steps.c.previous)
)
"""Steps that are to be sealed; `previous` still says which of them were yielded together."""

_heads = recordset(steps.c.id, steps.c.previous)
_sealed: dict[str, Any] = {"previous": _heads.c.previous}
_SEAL = (
    update(steps)
    .where(steps.c.id == _heads.c.id)
    .values(_sealed | {"digest": step_digest(_sealed)})
    .returning(steps.c.question_id, steps.c.sequence, steps.c.digest)
)
_EXECUTED = ("step_id", "epoch", "worker", "started_at", "ended_at", "outcome")
_COPY_ATTEMPTS = insert(attempts).from_select(
    _EXECUTED,
    select(steps.c.id, steps.c.epoch, steps.c.worker, steps.c.started_at, steps.c.finished_at, steps.c.state).where(
        steps.c.question_id == _pairs.c.question
    ),
)


def _belonging(table: Table) -> Insert:
    """Copies the rows that belong to steps."""
    own = [each.name for each in table.c if each.name not in ("step_id", "question_id")]
    copied = select(_new.c.id, _new.c.question_id, *(table.c[name] for name in own)).where(
        _old.c.question_id == _pairs.c.origin,
        _new.c.question_id == _pairs.c.question,
        _new.c.sequence == _old.c.sequence,
        table.c.step_id == _old.c.id,
    )
    return insert(table).from_select(["step_id", "question_id", *own], copied)


_COPY_SENTENCES, _COPY_SETS = _belonging(sentences), _belonging(paragraph_sets)
_COPY_REFERENCES = insert(made_paragraphs).from_select(
    ["question_id", "digest"],
    select(_pairs.c.question, made_paragraphs.c.digest).where(made_paragraphs.c.question_id == _pairs.c.origin),
)


def fork(engine: Engine, submission: Submission, at: Point | None, keys: Collection[str] = ()) -> Forked:
    """Records a run that takes over steps of `submission.origin`, and wakes whoever sends what follows.

    at: from where on steps are the fork's own. Those before are taken over as given, whatever the fork's settings would
        have asked for; without it, those are that they would have asked for just so.
    keys: the questions, all of them where there are none.
    Only steps that have ended are taken over, and none whose failure ended its question.
    Raises UnknownNameError, and InputError where the system can't go on from there.
    """
    known = Runs()
    with engine.begin() as connection:
        rows = _asked(connection, submission, keys)
        prefixes = _prefixes(connection, _plan(submission), rows, at, known)
        opened = record_run(connection, submission, len(rows))
        assert opened is not None  # noqa: S101 - a fork is no experiment's cell
        for start in range(0, len(rows), REPLAYED):
            chunk = list(enumerate(rows[start : start + REPLAYED], start=start))
            new = [{name: row[name] for name in QUESTION_OPENED} | _placed(submission, n) for n, row in chunk]
            ids = record_questions(connection, new, opened)
            pairs = [_pair(each.id, rows[each.position]["id"], prefixes) for each in ids]
            _take_over(connection, submission.id, pairs, {each.id: each.opened for each in ids})
            locked = lock_questions(connection, [each.id for each in ids])
            advance_questions(connection, known, locked, send=False, state=StepState.WAITING)
        wake(connection, submission.id)
    return Forked(questions=len(rows), adopted=sum(prefix.count for prefix in prefixes.values()))


def _asked(connection: Connection, submission: Submission, keys: Collection[str]) -> Sequence[RowMapping]:
    """The origin's questions that the fork asks; nobody removes it before this transaction ends."""
    origin = select(runs.c.state).where(runs.c.id == submission.origin).with_for_update(read=True, key_share=True)
    if connection.execute(origin).scalar() in (None, RunState.PRUNED):
        raise UnknownNameError(f"run {submission.origin} is being removed; fork another one")
    of_run = select(questions).where(questions.c.run_id == submission.origin).order_by(questions.c.position)
    rows = connection.execute(of_run).mappings().all()
    unknown = sorted(set(keys) - {row["key"] for row in rows})
    if unknown:
        raise UnknownNameError(
            f"run {submission.origin} has no question {unknown[0]!r}; `cotrail trace` takes their ids"
        )
    return [row for row in rows if not keys or row["key"] in keys]


def _placed(submission: Submission, position: int) -> dict[str, Any]:
    return {"run_id": submission.id, "position": position}


def _pair(question: int, origin: int, prefixes: Mapping[int, Prefix]) -> dict[str, Any]:
    prefix = prefixes[origin]
    return {"origin": origin, "question": question, "count": prefix.count, "worker": GIVEN if prefix.given else FORK}


def _plan(submission: Submission) -> RunPlan:
    """The fork as its steps will need it, before it is recorded."""
    return RunPlan(
        id=submission.id,
        system=submission.system,
        system_version=submission.system_version,
        settings=submission.settings,
        shots=submission.shots,
        binding=submission.binding,
        corpus=submission.corpus,
        model_name=submission.model_name,
        shared_in=None,
    )


def _prefixes(
    connection: Connection, plan: RunPlan, rows: Sequence[RowMapping], at: Point | None, runs: Runs
) -> dict[int, Prefix]:
    """What is taken over of each question, by its id in the origin."""
    prefixes, paragraphs = {}, Paragraphs()
    for start in range(0, len(rows), REPLAYED):
        chunk = rows[start : start + REPLAYED]
        histories = _histories(connection, [row["id"] for row in chunk], paragraphs)
        for row in chunk:
            prefixes[row["id"]] = _prefix(plan, row, histories[row["id"]], at, runs)
    return prefixes


def _histories(
    connection: Connection, ids: Sequence[int], paragraphs: Paragraphs
) -> Mapping[int, list[tuple[RowMapping, Recorded]]]:
    rows = connection.execute(_HISTORY, {"ids": ids}).mappings().all()
    histories: dict[int, list[tuple[RowMapping, Recorded]]] = defaultdict(list)
    for step, record in zip(rows, read_records(connection, rows, paragraphs), strict=True):
        histories[step["question_id"]].append((step, record))
    return histories


def _prefix(
    plan: RunPlan, row: RowMapping, history: Sequence[tuple[RowMapping, Recorded]], at: Point | None, runs: Runs
) -> Prefix:
    rows = [step for step, _ in history]
    before = len(rows) if at is None else steps_before(at, [step["kind"] for step in rows])
    records = tuple(_ended((record for _, record in history[:before]), given=at is not None))
    system = plan.open(asked(row), runs.systems)
    try:
        if at is None:
            records = records[: agreement(system, records, plan.binding)]
        if isinstance(advance(system, records, plan.binding), Failed):
            records = records[: _first_failure(rows[: len(records)])]
    except ReplayMismatchError as error:
        raise InputError(
            f"question {row['key']} can't be forked there: at step {error.sequence} the record has {error.recorded}, "
            f"and with these settings the system asks for {error.yielded}; fork at an earlier step"
        ) from error
    except BlockedError as error:
        raise InputError(f"question {row['key']} can't be forked there: {error}") from error
    return Prefix(count=len(records), given=at is not None)


def _ended(history: Iterable[Recorded], *, given: bool) -> Iterator[Recorded]:
    """The steps up to the first one that hasn't ended."""
    for record in history:
        if record.outcome is None:
            return
        yield replace(record, given=given or record.given)


def _first_failure(history: Sequence[RowMapping]) -> int:
    """Which step is the first that failed of those that the system asked for last."""
    last = history[-1]["previous"]
    failed = (n for n, step in enumerate(history) if step["previous"] == last and step["state"] == StepState.FAILED)
    return next(failed, len(history))


def _take_over(connection: Connection, run_id: str, pairs: Rows, opened: Mapping[int, str]) -> None:
    """Copies steps, as they are recorded in the end, and what belongs to them."""
    copied = connection.execute(_COPY_STEPS, {"rows": pairs, "run": run_id}).all()
    if len(copied) != sum(pair["count"] for pair in pairs):
        raise InputError("steps of the run were opened again meanwhile; fork it again")
    _seal(connection, copied, opened)
    for statement in (_COPY_ATTEMPTS, _COPY_SENTENCES, _COPY_SETS, _COPY_REFERENCES):
        connection.execute(statement, {"rows": pairs})


def _seal(connection: Connection, copied: Sequence[Row[Any]], opened: Mapping[int, str]) -> None:
    """Chains the copied steps anew, one batch of each question at a time: those that were yielded together."""
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
