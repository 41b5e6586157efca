"""The audit trail of runs: its verification and its export."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from itertools import islice
from numbers import Number
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, RowMapping, func, or_, select

from cotrail import __version__
from cotrail.audit import verification
from cotrail.audit.bundles import bundle_pieces, read_bundle
from cotrail.audit.findings import MOST_FINDINGS, Finding, Verification
from cotrail.audit.provenance import provenance
from cotrail.audit.records import Record
from cotrail.audit.run_check import ALGORITHM, PLAN, plan_digest
from cotrail.common.structs import common_fields
from cotrail.evaluation.metrics.answer_metrics import BUILT_IN
from cotrail.models.commands.summarizing import ENDED, VERSION
from cotrail.models.queries.question_summaries import count_summaries, read_summarized
from cotrail.models.queries.runs import RunRecord, read_run, resolve_run
from cotrail.models.queries.step_attempts import SealedQuestions, read_sealed_questions
from cotrail.models.queries.traces import find_question
from cotrail.models.records.contents import ParagraphCache
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.service_tables import question_summaries as summaries
from cotrail.models.schema.tables import questions
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import LOCAL_ONLY, operation
from cotrail.services.results.summarizing import AT_ONCE, is_current, scores_of, summaries_of
from cotrail.services.runs.labels import find_run
from cotrail.services.runs.scores import scorer_of, without_scores
from cotrail.services.store import reading


class Seals(SealedQuestions, frozen=True, kw_only=True):
    """The digests of a run, apart from its questions'.

    opened: that of its configuration, from created_at on; plan: that of its plan, which is part of the configuration,
    None where it was submitted before plans were recorded; digest: that of all of it, None while it isn't closed.
    """

    run: str
    created_at: datetime
    opened: str
    plan: str | None
    digest: str | None


@operation("audits.seals", "GET", "/runs/{run}/seals", Scope.READ)
def show_seals(run: str) -> Seals:
    """Say what of a run is sealed, by which digests, and since when; nothing is computed again."""
    # Raises UnknownNameError.
    with reading() as connection:
        record = find_run(connection, run)
        sealed = read_sealed_questions(connection, record.id)
        return Seals(
            **common_fields(sealed, SealedQuestions),
            run=record.id,
            created_at=record.created_at,
            opened=record.opened,
            plan=plan_digest(record.provenance[PLAN]) if PLAN in record.provenance else None,
            digest=record.digest,
        )


# Whether summaries are those that the record gives: the viewer and standings show them, and no digest covers them.
#
# They are computed again. What can't be computed here, as this process lacks a dataset or a metric, isn't compared, nor
# is what couldn't be computed there: a summary without scores says of a question that it is unscored, and nothing else.

SCORED = frozenset({"outcome", "cause", "f1", "recall", "scores"})
"""Columns that need the run's dataset."""

UNSCORED = frozenset({"unscored", "failed", "cancelled"})
"""Outcomes that need no scores."""


def summary_findings(connection: Connection, run_id: str) -> Iterator[Finding]:
    """Where summaries of a run aren't what its record gives; what other rules made is made again anyway."""
    record = read_run(connection, run_id)
    row = read_summarized(connection, [run_id]).get(run_id)
    is_complete = row is not None and row["complete"] and is_current(row, record.digest)
    yield from _of_questions(connection, record, is_complete=is_complete)
    # Of a run that is under way they lag behind its questions.
    if row is not None and is_complete:
        yield from _of_run(connection, record, row)


def _of_questions(connection: Connection, record: RunRecord, *, is_complete: bool) -> Iterator[Finding]:
    score, paragraphs, last = scorer_of(record), ParagraphCache(), 0
    while chunk := _chunk(connection, record.id, last):
        last = chunk[-1]["question_id"]
        own = [row["question_id"] for row in chunk if row["of_run"] == record.id and row["status"] in ENDED]
        made = summaries_of(connection, record, own, score or without_scores, paragraphs) if own else {}
        for row in chunk:
            if row["version"] != VERSION and not is_complete:
                continue
            named = {"table": "question_summaries", "run": record.id, "question": row["key"]}
            if row["question_id"] not in made:
                yield Finding(what="added", detail="its question is none of the run's that have ended", **named)
                continue
            left_out = SCORED if score is None or _is_unscored(row) else frozenset()
            for name, value in made[row["question_id"]].items():
                if name not in left_out and not _same_column(name, row[name], value):
                    yield Finding(what="changed", column=name, detail=f"by the record it is {value!r}", **named)


def _is_unscored(row: RowMapping) -> bool:
    """Whether a summary holds nothing that scores give, as where it was made without the run's dataset."""
    return not row["scores"] and row["f1"] is None and row["recall"] is None and row["outcome"] in UNSCORED


def _chunk(connection: Connection, run_id: str, last: int) -> list[RowMapping]:
    query = (
        select(summaries, questions.c.key, questions.c.status, questions.c.run_id.label("of_run"))
        .join(questions, questions.c.id == summaries.c.question_id)
        .where(or_(summaries.c.run_id == run_id, questions.c.run_id == run_id))
        .where(summaries.c.question_id > last)
        .order_by(summaries.c.question_id)
        .limit(AT_ONCE)
    )
    return list(connection.execute(query).mappings())


def _of_run(connection: Connection, record: RunRecord, row: RowMapping) -> Iterator[Finding]:
    ended = select(func.count()).where(questions.c.run_id == record.id, questions.c.status.in_(ENDED))
    counts = count_summaries(connection, record.id)
    if counts.questions != connection.execute(ended).scalar_one():
        yield Finding(
            table="question_summaries", what="removed", run=record.id, detail="a question that ended has none"
        )
    for name, made in (("counts", msgspec.to_builtins(counts)), ("scores", scores_of(connection, record))):
        if not _same_column(name, row[name], made):
            yield Finding(
                table="run_summaries",
                what="changed",
                run=record.id,
                column=name,
                detail="they aren't what its questions' summaries give",
            )


def _same_column(name: str, stored: Any, made: Any) -> bool:
    """Whether a column holds what was made; metrics of extensions may be known on one side alone."""
    if name == "scores":
        compared = {*BUILT_IN, *(stored.keys() & made.keys())}
        stored, made = ({each: value for each, value in side.items() if each in compared} for side in (stored, made))
    return _same(stored, made)


def _same(stored: Any, made: Any) -> bool:
    """Whether two values are the same but for the last digits of fractions."""
    if isinstance(stored, Mapping) and isinstance(made, Mapping):
        stored, made = ({str(name): value for name, value in each.items()} for each in (stored, made))
        return stored.keys() == made.keys() and all(_same(stored[name], made[name]) for name in stored)
    if isinstance(stored, Number | str) and isinstance(made, Number | str) and type(made) is not type(stored):
        try:
            stored, made = Decimal(str(stored)), Decimal(str(made))
        except ArithmeticError:
            return False
    if isinstance(stored, float | Decimal) and isinstance(made, float | Decimal):
        return math.isclose(stored, made, rel_tol=1e-9, abs_tol=1e-12)
    return bool(stored == made)


def trail(connection: Connection, run: str) -> tuple[str, Iterator[Record]]:
    """A run's id, and all that is recorded of it; run: its id, the beginning of it, its name, or `latest`."""
    run_id = resolve_run(connection, run)
    return run_id, read_trail(connection, run_id)


def verify(
    records: Iterable[Record], digest: str | None = None, plan: str | None = None, *, bundled: bool = False
) -> Verification:
    """Computes all digests of a run's records again, and names what was changed, removed, added or reordered.

    digest, plan: the run's and its plan's, as they were noted down once; bundled: whether the records are a file's.
    """
    checked = verification.verify(records, bundled=bundled)
    noted = [
        Finding(table="runs", what="changed", run=checked.run, column=column, detail=f"{given} was noted down")
        for column, given, found in (("digest", digest, checked.digest), ("provenance", plan, checked.plan))
        if given is not None and _digits(given) != _digits(found)
    ]
    return replace(checked, findings=(*checked.findings, *noted))


def with_summaries(connection: Connection, run_id: str, checked: Verification) -> Verification:
    """The verification with what is wrong in the run's summaries, which are computed from a record that is sound."""
    if checked.findings:
        return checked
    return replace(checked, findings=tuple(islice(summary_findings(connection, run_id), MOST_FINDINGS)))


def _digits(digest: str | None) -> str:
    return (digest or "").lower().removeprefix(ALGORITHM)


Follow = Annotated[Callable[[Iterable[Record]], Iterable[Record]], LOCAL_ONLY]
"""Passes records on as they are read."""


def unseen(records: Iterable[Record]) -> Iterable[Record]:
    """Passes the records on."""
    return records


@operation("audits.verify", "GET", "/runs/{run}/verification", Scope.READ)
def verify_run(
    run: str, *, digest: str | None = None, plan: str | None = None, follow: Follow = unseen
) -> Verification:
    """Compute all digests and summaries of a run again, and name what was changed, removed, added or reordered.

    digest, plan: the run's and its plan's, as they were noted down once.
    """
    with reading() as connection:
        run_id, records = trail(connection, run)
        return with_summaries(connection, run_id, verify(follow(records), digest, plan))


@operation("audits.verify_bundle", "POST", "/bundles/verification", Scope.READ)
def verify_bundle(
    bundle: Path, *, digest: str | None = None, plan: str | None = None, follow: Follow = unseen
) -> Verification:
    """Do the same for a run's bundle; bundle: a file that `audit export` wrote."""
    return verify(follow(read_bundle(bundle)), digest, plan, bundled=True)


@operation("audits.bundle", "GET", "/runs/{run}/bundle", Scope.READ, answers="stream", media_type="application/zstd")
def bundle(run: str, follow: Follow = unseen) -> Iterator[bytes]:
    """Give all that is recorded of a run as one file: JSON Lines under Zstandard."""
    with reading() as connection:
        run_id, records = trail(connection, run)
        yield from bundle_pieces(follow(records), run_id, __version__)


@operation("audits.provenance", "GET", "/runs/{run}/questions/{question}/provenance", Scope.READ)
def show_provenance(run: str, question: str) -> dict[str, Any]:
    """Give a question as W3C PROV-JSON; question: its id, or its number in the run, from 1."""
    with reading() as connection:
        run_id = resolve_run(connection, run)
        return provenance(read_trail(connection, run_id, [find_question(connection, run_id, question)]))
