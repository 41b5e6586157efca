"""Forks of runs: some settings changed, everything else as the origin pinned it, recorded steps taken over."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace
from sqlalchemy import Connection, Engine

from cotrail.audit.run_check import PLAN, plan_digest
from cotrail.common.nearest import guess
from cotrail.common.structs import dotted, merged, nested
from cotrail.core.binding import NAMES, OWN_FIELDS, PINS, SYSTEM_SOURCE, Binding, name_in, read_binding, with_engines
from cotrail.core.budgets import Budgets
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.edits import EDIT, Edit, Edited, Point, StepEdit
from cotrail.core.ports.encoders import RELEVANCE_RATER, ROLES
from cotrail.core.search_ways import pinned_way
from cotrail.data.demonstrations.sets import in_form
from cotrail.errors import InputError
from cotrail.models.commands import forking
from cotrail.models.commands.submission import Submission
from cotrail.models.queries.experiments import count_taken_over
from cotrail.models.queries.listed_questions import read_submitted
from cotrail.models.queries.runs import RunRecord, read_run
from cotrail.models.records.budgets import read_budgets
from cotrail.models.records.runs import Runs
from cotrail.services.actor import Scope, actor
from cotrail.services.library.named_files import ForkFiles
from cotrail.services.operations.operation import operation
from cotrail.services.runs.checking import checked
from cotrail.services.runs.configuring import configure
from cotrail.services.runs.labels import find_run, labels_of
from cotrail.services.runs.pinning import pin, read_stated, recorded_file, with_plan
from cotrail.services.runs.requests import RunRequest, make_request
from cotrail.services.runs.resolving import make_shots, read_shown, resolve_engines
from cotrail.services.store import open_store, reading_from
from cotrail.systems.registry import find_system
from cotrail.systems.spec import Needs

NUMBER_FIELDS = ("seed", "temperature")
NONE = "none"
"""What takes the origin's reranker, or its filter, away."""

FIELDS = ("model", "profile", "serving", "retriever", "filter", "rerank", "rerank_depth", *NUMBER_FIELDS)
"""What a fork may change of a run apart from its system's settings and its engines, which go by their roles."""

_KEPT = ("request", "files", "judges")
"""What a fork's provenance has of its origin's."""

_JUDGED = ("settings.rubric.", "settings.runs")
"""How the keys of settings begin that decide what the questions of a judge's run hold."""

ENGINE, _SETTING = "engines.", "settings."
"""How the keys of engines and of settings begin where they are written whole."""


class ForkRequest(ForkFiles, Struct, frozen=True, kw_only=True):
    """Request for a fork.

    run: the origin's id, its beginning, or `latest`.
    changes: values by field, role of an engine (`extractor`, or `engines.ROLE` for any) or setting; a setting goes by
        its dotted path, or by the last part where that is enough.
    at: the steps before this one are taken over even if the new settings would have asked otherwise; without it,
        the steps that they would have asked for too.
    questions: the ids of those to fork; all of them where none is named.
    name, tags: labels of the fork; it takes over none of the origin's.
    plan: the file of what is stated of the fork's evaluation beforehand; it takes over nothing of the origin's plan.
    edit: what replaces a part of the step at `at`, of the one question that is named.
    """

    run: str
    changes: Mapping[str, Any] = {}
    at: Point | None = None
    questions: tuple[str, ...] = ()
    name: str | None = None
    tags: tuple[str, ...] = ()
    edit: Edit | None = None


class ForkedRun(Struct, frozen=True, kw_only=True):
    """A run that was just forked.

    adopted: how many steps it took over; whole: how many questions with their answer; plan: the digest of its plan.
    """

    run: str
    origin: str
    questions: int
    adopted: int
    whole: int
    plan: str


def fork(engine: Engine, request: ForkRequest) -> ForkedRun:
    """Checks and records a fork, which workers then carry out; raises InputError and its kinds."""
    with reading_from(engine) as connection:
        origin = find_run(connection, request.run)
        shots = Runs(find_system).plan(connection, origin.id).shots
        budgets = read_budgets(connection, origin.id)
        questions = read_submitted(connection, origin.id, request.questions)
    submission = prepare_fork(origin, shots, budgets, resolve_changes(origin, request.changes), request.at)
    edit = _edit_of(request)
    if edit is not None:
        said = Edited(question=request.questions[0], edit=edit)
        submission = replace(submission, provenance={**submission.provenance, EDIT: msgspec.to_builtins(said)})
    submission = replace(submission, labels=labels_of(request.name, request.tags))
    submission = with_plan(submission, questions, read_stated(request.plan))
    forked = forking.fork(engine, submission, request.at, find_system, request.questions, edit)
    return ForkedRun(
        run=submission.id, origin=origin.id, plan=plan_digest(submission.provenance[PLAN]), **asdict(forked)
    )


def _edit_of(request: ForkRequest) -> StepEdit | None:
    """The edit that a fork carries, with the name of who asks for it; raises InputError where it can't carry one."""
    if request.edit is None:
        return None
    if request.at is None or len(request.questions) != 1:
        raise InputError("an edit is of one step of one question: name the question, and the step at which to fork")
    part = request.edit.part
    return StepEdit(**{part: _storable(part, request.edit.value)}, by=actor().name)


def read_fork(connection: Connection, runs: Sequence[str]) -> ForkedRun:
    """A run that was forked before, as its forking was answered."""
    [run_id] = runs
    record = read_run(connection, run_id)
    adopted, whole = count_taken_over(connection, run_id)
    return ForkedRun(
        run=run_id,
        origin=record.origin or "",
        questions=record.size,
        adopted=adopted,
        whole=whole,
        plan=plan_digest(record.provenance[PLAN]),
    )


def resolve_changes(record: RunRecord, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes with whole keys, a setting's as `settings.` and its dotted path; InputError says what there is.

    The key of an engine is its role.
    """
    return {_resolved(record, key): _storable(key, value) for key, value in changes.items()}


def prepare_fork(
    record: RunRecord,
    shots: Mapping[AnswerForm, Demonstrations],
    budgets: Budgets,
    changes: Mapping[str, Any],
    at: Point | None,
) -> Submission:
    """The run that a fork begins, checked as every submission is; raises InputError and its kinds.

    What isn't changed stays as the origin pinned it, whether or not it can still be found.
    shots: the origin's demonstrations; budgets: those that it has now.
    """
    request = _request(record, budgets, changes)
    system = configure(find_system(record.system, record.system_version), request)
    # With other settings the system may need fewer engines than the origin named, or others.
    engines = {role.name: name for role in system.needs.engines if (name := _engine_name(record, role.name))}
    request = replace(request, engines=engines | request.engines)
    if system.needs.corpus and record.corpus is None:
        raise InputError(f"with these settings {record.system} searches a corpus, and run {record.id} has none")
    if system.spec.judges and any(key.startswith(_JUDGED) for key in changes):
        raise InputError(f"{record.id} holds what its own rubric shows: judge by another one with `cotrail judge`")
    recorded: dict[str, Any] = {key: record.provenance[key] for key in _KEPT if key in record.provenance}
    # The origin's own demonstrations win: its prompts must stay the same byte for byte.
    shown = {**make_shots(system.needs, _source(record, shots, system.needs), Demonstrations()), **shots}
    resolved = resolve_engines(request, system, corpora=record.corpora, shots=shown)
    submission = pin(checked(resolved), {**recorded, "set": dict(changes)})
    return replace(
        submission,
        binding=_pinned(record, submission.binding, changes),
        origin=record.id,
        forked_at=None if at is None else str(at),
    )


def _request(record: RunRecord, budgets: Budgets, changes: Mapping[str, Any]) -> RunRequest:
    changed = {key.removeprefix(_SETTING): value for key, value in changes.items() if key.startswith(_SETTING)}
    way = pinned_way(record.knowledge)
    values: dict[str, Any] = {
        "retriever": way.retriever or None,
        "filter": way.filter or None,
        **(
            {"rerank": _engine_name(record, RELEVANCE_RATER.name), "rerank_depth": way.reranked} if way.reranked else {}
        ),
        "serving": "batch" if record.batched else "live",
        "question_budget": msgspec.to_builtins(budgets.question),
        "run_budget": msgspec.to_builtins(budgets.run),
        "system": record.system,
        "dataset": record.dataset,
        "questions": "",
        "corpora": tuple(record.corpora),
        "settings": merged(record.settings, nested(changed)),
        "profile": record.profile,
        "temperature": record.temperature,
        "seed": record.seed,
        "model": record.model_name,
    }
    others = {key: value for key, value in changes.items() if not key.startswith(_SETTING)}
    engines = {role: name for role, name in others.items() if role not in FIELDS}
    values |= {key: others[key] for key in FIELDS if key in others} | {"engines": engines}
    values |= {key: None for key in ("filter", "rerank") if values.get(key) == NONE}
    return make_request(values | ({} if values.get("rerank") else {"rerank_depth": None}))


def _engine_name(record: RunRecord, role: str) -> str:
    return str(getattr(record, NAMES[role])) if role in NAMES else name_in(record.knowledge.get(role, ""))


def _pinned(record: RunRecord, fresh: Binding, changes: Mapping[str, Any]) -> Binding:
    """The fork's binding: the origin's, except where something is changed or new."""
    origin = read_binding(
        {column: getattr(record, column) for column in (*PINS, "corpus", "corpus_revision", "knowledge")}
    )
    kept = fresh.pins.keys() - pinned_way(fresh.pins).pins.keys() - {SYSTEM_SOURCE}
    engines = {name: origin.engine(name) for name in (*OWN_FIELDS, *kept) if fresh.engine(name)}
    # An engine that asks the run's language model has that model's identity in its own.
    asking = {role for role, identity in engines.items() if "model" in changes and f"+{record.model}" in identity}
    renewed = changes.keys() | asking | ({RELEVANCE_RATER.name} if "rerank" in changes else set())
    return with_engines(fresh, {name: pin for name, pin in engines.items() if pin and name not in renewed})


def _source(record: RunRecord, shots: Mapping[AnswerForm, Demonstrations], needs: Needs) -> Demonstrations:
    """The demonstrations that the fork's are made from: the origin's chains, its file, or else its answers."""
    # Answers can be cut from chains but not the reverse, so chains are taken where there are any.
    if AnswerForm.COT in shots or AnswerForm.COT not in needs.forms:
        return shots.get(AnswerForm.COT) or shots.get(AnswerForm.DIRECT) or Demonstrations()
    files, request = record.provenance.get("files", {}), record.provenance.get("request", {})
    if "demonstrations" not in files:
        return shots.get(AnswerForm.DIRECT, Demonstrations())
    places = {key: str(recorded_file(record.id, files[key])) for key in ("demonstrations", "sets") if key in files}
    sets = places.get("sets", request.get("sets"))
    return in_form(read_shown(places["demonstrations"], sets, request.get("set_number")), AnswerForm.COT)


def _resolved(record: RunRecord, key: str) -> str:
    """The full key that the given one abbreviates."""
    if key in FIELDS or key in ROLES:
        return key
    if key.startswith(ENGINE):
        return key.removeprefix(ENGINE)
    settings = tuple(path for path, _ in dotted(record.settings))
    paths = [path for path in settings if key in (path, f"settings.{path}")]
    paths = paths or [path for path in settings if path.rsplit(".", 1)[-1] == key]
    if len(paths) == 1:
        return f"settings.{paths[0]}"
    if paths:
        raise InputError(f"{key!r} may be {' or '.join(paths)}; write the whole path")
    names = (*FIELDS, *ROLES, *settings)
    # A setting is as well known by the last part of its path.
    meant = guess(key, (*names, *(path.rsplit(".", 1)[-1] for path in names)))
    there = "" if meant else f"; there are {len(names)}, such as {', '.join(names[: len(FIELDS) + len(ROLES)])}"
    raise InputError(
        f"there is no {key!r} to set in run {record.id}{meant}{there}; `cotrail systems {record.system}` lists settings"
    )


def _storable(key: str, value: Any) -> Any:
    # PostgreSQL's JSON can't hold this character, which a setting may have anywhere within.
    if b"\\u0000" in msgspec.json.encode(value):
        raise InputError(f"{key}: the value holds a NUL character (\\u0000), which can't be stored; take it out")
    return value


@operation("forks.fork", "POST", "/runs/fork", Scope.SUBMIT, status=201, replayed=read_fork)
def fork_run(request: ForkRequest) -> ForkedRun:
    """Start a new run that takes over recorded steps of another one and computes only what follows."""
    with open_store() as engine:
        return fork(engine, request)
