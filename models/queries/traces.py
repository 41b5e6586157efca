"""Traces of questions: each step, what it found or wrote, and the exact prompt that it was given."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, RowMapping, func, select
from sqlalchemy.exc import NoResultFound

from cotrail.audit.records import UNREADABLE
from cotrail.core.actions.embed import EMBED
from cotrail.core.actions.entail import ENTAIL
from cotrail.core.actions.generate import Prompted
from cotrail.core.actions.kind import digests_in, paragraphs_in
from cotrail.core.actions.registry import KINDS, finds_paragraphs, has_prompt
from cotrail.core.paragraphs import Hit, Paragraph
from cotrail.core.prompt_records import chain_length, parts_that_may_go
from cotrail.core.prompts import Prompt
from cotrail.core.question_kinds import read_kinds
from cotrail.core.questions import GoldParagraph
from cotrail.core.results import Embedded, Entailed, Failure, Generated
from cotrail.core.stored_parts import Stored
from cotrail.errors import CotrailError, InputError, UnknownNameError
from cotrail.models.records.contents import read_demonstrations
from cotrail.models.records.paragraphs import hit_of
from cotrail.models.records.question_ids import read_question_ids
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import attempts, paragraph_sets, paragraphs, questions, sentences, steps

CHUNK = 100
"""The number of questions read at once."""


class Collected(Struct, frozen=True, kw_only=True):
    """A paragraph that a question collected, and the search that first found it: step, query, rank and score."""

    paragraph: Paragraph
    step: int
    query: str
    rank: int
    score: float


class TracedStep(Struct, frozen=True, kw_only=True):
    """A step as it was carried out.

    query: what a search was for; source: the knowledge source or the corpus that it named, None for the run's first
        corpus; hits: what was found; new: the digests of those that were collected here first.
    sentences, paragraphs: how many of them the prompt was made of; left_out: how many of its parts but demonstrations
        didn't fit the context; generated: what the model wrote; sample: which of several chains it is.
    compared: the sentences that were embedded, or the one that was judged; against: the digests of the paragraphs that
        they were compared with; embedded, entailed: what was found.
    request, result: as they are recorded, of a kind that none of the fields above shows.
    batch: equal for the steps that the system asked for together.
    attempts: how many executions there were, this one included; adopted: whether another run computed the result.
    """

    sequence: int
    kind: str
    state: str
    worker: str | None
    attempts: int
    milliseconds: float | None
    adopted: bool = False
    batch: str = ""
    query: str | None = None
    source: str | None = None
    hits: tuple[Hit, ...] = ()
    new: frozenset[str] = frozenset()
    sentences: int = 0
    paragraphs: int = 0
    left_out: int = 0
    generated: Generated | None = None
    sample: int | None = None
    compared: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    embedded: Embedded | None = None
    entailed: Entailed | None = None
    request: dict[str, Any] | None = None
    result: Any = None
    failure: Failure | None = None


class TracedQuestion(Struct, frozen=True, kw_only=True):
    """A question with all that happened to it; of an unfinished one, sentences and paragraphs are those so far.

    details: of the answer, as JSON; `SystemSpec.details` is their type.
    """

    key: str
    text: str
    answers: tuple[str, ...]
    gold: tuple[GoldParagraph, ...]
    pinned: GoldParagraph | None
    kinds: Mapping[str, str]
    status: str
    answer: str | None
    reason: Failure | None
    sentences: tuple[str, ...]
    collected: tuple[Collected, ...]
    steps: tuple[TracedStep, ...]
    details: Any = None

    @property
    def paragraphs(self) -> tuple[Paragraph, ...]:
        """The collected paragraphs alone."""
        return tuple(each.paragraph for each in self.collected)

    @property
    def stated(self) -> str:
        """The span that an answer of several sentences states, by its details; empty where they have none."""
        found = self.details.get("stated") if isinstance(self.details, dict) else None
        return found if isinstance(found, str) else ""


def read_questions(connection: Connection, run_id: str) -> Iterator[TracedQuestion]:
    """Yield all questions of a run in their order."""
    ids = read_question_ids(connection, run_id)
    for start in range(0, len(ids), CHUNK):
        yield from _read(connection, ids[start : start + CHUNK].tolist())


def read_question(connection: Connection, run_id: str, key: str) -> TracedQuestion:
    """Return one question by the dataset's id or, where no question has it, by its number in the run, from 1."""
    return next(_read(connection, [find_question(connection, run_id, key)]))


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
    chosen = steps.c.question_id == question_id
    query = select(steps.c.kind, steps.c.request, steps.c.result).where(chosen, steps.c.sequence == sequence)
    row = connection.execute(query).one_or_none()
    if row is None:
        count = connection.execute(select(func.count()).select_from(steps).where(chosen)).scalar_one()
        raise InputError(f"question {key} has no step {sequence}; its steps are 0 to {count - 1}")
    prompt = _prompt(connection, row.kind, row.request, sequence)
    if row.result is None:
        return prompt.render()
    seen = msgspec.convert(row.result, Generated)
    prompt = prompt.keep(seen.demonstrations, seen.paragraphs, seen.first_demonstration)
    if prompt.digest != seen.prompt_digest:
        raise CotrailError(
            f"the prompt of step {sequence} can't be rebuilt: its SHA-256 is {prompt.digest}, "
            f"and the model saw {seen.prompt_digest}; check that the run's store is untouched"
        )
    return prompt.render()


def find_step(connection: Connection, step_id: int) -> tuple[str, str, int]:
    """Return the run, the question's key and the sequence of the step with that id; raises UnknownNameError."""
    of_step = select(questions.c.run_id, questions.c.key, steps.c.sequence).where(steps.c.id == step_id)
    row = connection.execute(of_step.join_from(steps, questions, steps.c.question_id == questions.c.id)).one_or_none()
    if row is None:
        raise UnknownNameError(f"there is no step with the id {step_id}; name one by RUN QUESTION STEP instead")
    return row.run_id, row.key, row.sequence


def find_question(connection: Connection, run_id: str, key: str) -> int:
    """Return the id of a question given by its key or its number in the run, from 1; raises UnknownNameError."""
    of_run = select(questions.c.id).where(questions.c.run_id == run_id)
    found = connection.execute(of_run.where(questions.c.key == key)).scalar()
    if found is None and key.isascii() and key.isdigit() and len(key) < 10:
        found = connection.execute(of_run.where(questions.c.position == int(key) - 1)).scalar()
    if found is None:
        first = connection.execute(
            select(questions.c.key).where(questions.c.run_id == run_id).order_by(questions.c.position).limit(3)
        ).scalars()
        raise UnknownNameError(
            f"run {run_id} has no question {key!r}; give its id (such as {', '.join(first)}) or its number from 1"
        )
    return int(found)


def _prompt(connection: Connection, kind: str, request: dict[str, Any], sequence: int) -> Prompt:
    wanted = select(paragraphs).where(paragraphs.c.digest.in_(digests_in(request)))
    known = {row.digest: Paragraph(id=row.digest, title=row.title, text=row.text) for row in connection.execute(wanted)}
    stored = Stored(known, partial(read_demonstrations, connection))
    action = KINDS[kind].read(request, stored)
    if not isinstance(action, Prompted):
        raise InputError(f"step {sequence} is a {kind} step and has no prompt; name a reason or read step")
    return action.prompt


def _read(connection: Connection, ids: Sequence[int]) -> Iterator[TracedQuestion]:
    hits = _read_hits(connection, ids)
    steps_of = _read_steps(connection, ids)
    written = _read_sentences(connection, ids)
    rows = connection.execute(select(questions).where(questions.c.id.in_(ids)).order_by(questions.c.position))
    for row in rows.mappings():
        yield _question(row, steps_of[row["id"]], hits, written[row["id"]])


def _question(
    row: RowMapping, rows: Sequence[RowMapping], hits: dict[int, list[RowMapping]], written: Sequence[str]
) -> TracedQuestion:
    found: dict[str, Collected] = {}
    for step in rows:
        for each in hits.get(step["id"], ()):
            found.setdefault(each["digest"], _collected(each, step["sequence"]))
    digests = row["collected"] if row["collected"] is not None else _collected_so_far(rows, hits)
    kept = {digest: found[digest] for digest in digests if digest in found}
    return TracedQuestion(
        key=row["key"],
        text=row["text"],
        answers=tuple(row["answers"]),
        gold=msgspec.convert(row["gold"], tuple[GoldParagraph, ...]),
        pinned=msgspec.convert(row["pinned"], GoldParagraph | None),
        kinds=read_kinds(row["kind"]),
        status=row["status"],
        answer=row["answer"] if row["status"] == QuestionStatus.FINISHED else None,
        reason=None if row["reason"] is None else msgspec.convert(row["reason"], Failure),
        sentences=tuple(written if row["sentences"] is None else row["sentences"]),
        collected=tuple(kept.values()),
        steps=tuple(_step(step, hits.get(step["id"], ()), kept) for step in rows),
        details=row["weighing"],
    )


def _collected_so_far(rows: Sequence[RowMapping], hits: dict[int, list[RowMapping]]) -> list[str]:
    """Return the digests of the latest prompt's paragraphs, followed by those found since."""
    collected: dict[str, None] = {}
    for step in rows:
        if has_prompt(step["kind"]):
            collected = dict.fromkeys(paragraphs_in(step["request"]))
        collected |= dict.fromkeys(each["digest"] for each in hits.get(step["id"], ()))
    return list(collected)


def _step(row: RowMapping, hits: Sequence[RowMapping], kept: dict[str, Collected]) -> TracedStep:
    request = row["request"]
    common = {name: row[name] for name in ("sequence", "kind", "state", "worker", "attempts", "milliseconds")}
    common["adopted"] = row["adopted_from"] is not None
    common["batch"] = row["previous"]
    common["failure"] = msgspec.convert(row["failure"], Failure | None)
    if finds_paragraphs(row["kind"]):
        return TracedStep(
            **common,
            query=request[KINDS[row["kind"]].query],
            source=request.get("source") or request.get("corpus"),
            hits=tuple(_hit(each) for each in hits),
            new=frozenset(
                each["digest"]
                for each in hits
                if each["digest"] in kept and kept[each["digest"]].step == row["sequence"]
            ),
        )
    if has_prompt(row["kind"]):
        generated = msgspec.convert(row["result"], Generated | None)
        return TracedStep(
            **common,
            sentences=chain_length(request),
            paragraphs=len(paragraphs_in(request)),
            left_out=0 if generated is None else parts_that_may_go(request) - generated.paragraphs,
            generated=generated,
            sample=request.get("sample"),
        )
    shown = _COMPARISONS.get(row["kind"], _as_recorded)
    return TracedStep(**common, **shown(row))


def _embedding(row: RowMapping) -> dict[str, Any]:
    request = row["request"]
    embedded = msgspec.convert(row["result"], Embedded | None)
    return {"compared": tuple(request["sentences"]), "against": tuple(paragraphs_in(request)), "embedded": embedded}


def _entailment(row: RowMapping) -> dict[str, Any]:
    request = row["request"]
    entailed = msgspec.convert(row["result"], Entailed | None)
    return {"compared": (request["hypothesis"],), "against": tuple(paragraphs_in(request)), "entailed": entailed}


def _as_recorded(row: RowMapping) -> dict[str, Any]:
    return {"request": row["request"], "result": row["result"]}


_COMPARISONS = {EMBED.name: _embedding, ENTAIL.name: _entailment}


def _hit(row: RowMapping) -> Hit:
    return hit_of(row["rank"], row["paragraph_id"], row["title"], row["text"], row["score"])


def _collected(row: RowMapping, sequence: int) -> Collected:
    found = _hit(row)
    return Collected(paragraph=found.paragraph, step=sequence, query=row["query"], rank=found.rank, score=found.score)


def _read_steps(connection: Connection, ids: Sequence[int]) -> dict[int, list[RowMapping]]:
    executions = select(func.count()).where(attempts.c.step_id == steps.c.id).correlate(steps).scalar_subquery()
    query = (
        select(steps, executions.label("attempts"))
        .where(steps.c.question_id.in_(ids))
        .order_by(steps.c.question_id, steps.c.sequence)
    )
    grouped = defaultdict(list)
    for row in connection.execute(query).mappings():
        grouped[row["question_id"]].append(row)
    return grouped


def _read_hits(connection: Connection, ids: Sequence[int]) -> dict[int, list[RowMapping]]:
    """Return what each search step found, in the order of rank, by the step's id."""
    query = (
        select(paragraph_sets, paragraphs.c.title, paragraphs.c.text)
        .join_from(paragraph_sets, paragraphs, paragraph_sets.c.digest == paragraphs.c.digest)
        .where(paragraph_sets.c.question_id.in_(ids))
        .order_by(paragraph_sets.c.step_id, paragraph_sets.c.rank)
    )
    grouped = defaultdict(list)
    for row in connection.execute(query).mappings():
        grouped[row["step_id"]].append(row)
    return grouped


def _read_sentences(connection: Connection, ids: Sequence[int]) -> dict[int, list[str]]:
    query = select(sentences.c.question_id, sentences.c.text).where(sentences.c.question_id.in_(ids))
    grouped = defaultdict(list)
    for question_id, text in connection.execute(query.order_by(sentences.c.question_id, sentences.c.position)):
        grouped[question_id].append(text)
    return grouped
