"""Submission of runs: everything that a request names is checked before anything is written."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Engine

from cotrail.audit.run_check import PLAN, plan_digest
from cotrail.common.humanize import count
from cotrail.common.structs import without_unused
from cotrail.configuration.settings import settings
from cotrail.core.actions.registry import carried_out_by
from cotrail.core.binding import Binding
from cotrail.core.ports.retriever import Corpus
from cotrail.core.questions import Question
from cotrail.data.corpora.paragraph_ids import paragraphs_in, titled_in
from cotrail.data.datasets.loading import form_of, load_questions, reading_of
from cotrail.engines.language_models.catalogue import catalogue, find_model
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.providers import provided
from cotrail.errors import InputError
from cotrail.evaluation.metrics.corpus_coverage import coverage, located
from cotrail.evaluation.metrics.question_scores import scorer
from cotrail.evaluation.metrics.stop_rules import UNTIL, StopRule, parse_rule, rule_of
from cotrail.models.commands import submission
from cotrail.models.commands.new_runs import Submission
from cotrail.models.queries.outcomes import unanswered
from cotrail.models.queries.runs import RunRecord, read_run
from cotrail.models.records.labels import NO_LABELS, namesakes, read_labels
from cotrail.models.records.runs import READING, STAND_INS
from cotrail.services.access.grants import seen_corpora
from cotrail.services.actor import Scope
from cotrail.services.library.named_files import PATH_FIELDS
from cotrail.services.library.uploaded_files import uploaded_name
from cotrail.services.operations.operation import App, current_app, operation
from cotrail.services.runs.composing import check_evidence, compose, file_record
from cotrail.services.runs.labels import are_alike, repeated
from cotrail.services.runs.planning import AskedQuestion, PreparedRun, read_stated, with_plans
from cotrail.services.runs.progress import waves_in_words
from cotrail.services.runs.requests import LABEL_FIELDS, RunRequest
from cotrail.services.runs.runnable import (
    ConfiguredSystem,
    check_answers,
    check_splitter,
    configure,
    make_shots,
    read_shown,
    read_words,
)
from cotrail.services.store import open_store, reading
from cotrail.systems.registry import find_system, recorded_system
from cotrail.tasks.broker_health import Present, call


def prepare(request: RunRequest) -> PreparedRun:
    """Checks all that the request names and reads its files; raises InputError and its kinds."""
    demonstrations = read_shown(request.demonstrations, request.sets, request.set_number)
    titles = read_shown(request.title_demonstrations, request.sets, request.set_number)
    empty = next((field for field in PATH_FIELDS if getattr(request, field) == ""), None)
    if empty and request.asked is None:
        raise InputError(f"`{empty}` is empty; name a file, or leave it out")
    if request.sets and not (request.demonstrations or request.title_demonstrations):
        raise InputError(
            "`sets` says which of the demonstrations are shown, and there are none; name `demonstrations` too"
        )
    spec = find_system(request.system)
    check_answers(spec)
    system = configure(spec, request, instructed=bool(demonstrations.instruction))
    check_splitter(system.settings)
    # A system that searches no corpus may name some, from which gold paragraphs that a file gives by id are read.
    corpora = _open_corpora(system, request.all_corpora)
    questions, missing = _read_questions(request, system, corpora)
    composed = compose(
        request,
        system,
        corpora={name: corpus.revision for name, corpus in corpora.items()},
        shots=make_shots(system.needs, demonstrations, titles) | read_words(request.prompt, system),
        provenance=_provenance(request),
    )
    if rule := rule_of(composed.provenance):
        questions = in_random_order(questions, request.seed)
        check_measurable(rule, composed, questions)
    first, *further = with_plans(list(repeated(composed, request.repeat)), questions, read_stated(request.plan))
    return PreparedRun(
        submission=first,
        questions=questions,
        missing_gold=missing,
        further=tuple(further),
        alike=request.repeat > 1 and are_alike(composed, system.needs),
    )


def _provenance(request: RunRequest) -> dict[str, Any]:
    """What the record says of the request: its fields, the rule that stops it, and its files."""
    seldom = ("map", "corpora", "question_budget", "run_budget", "serving", "repeat", "until", "plan")
    written = without_unused(_as_recorded(request), *seldom)
    kept = written.keys() - {*LABEL_FIELDS, "question"}
    return {
        "request": {key: value for key, value in written.items() if key in kept},
        **({UNTIL: str(parse_rule(request.until))} if request.until is not None else {}),
        "files": {field: file_record(path) for field, path in request.files.items()},
        **({READING: reading_of(request.dataset, Path(request.questions), request.map)} if request.questions else {}),
    }


def _as_recorded(request: RunRequest) -> RunRequest:
    """The request with uploaded files by their names."""
    names = {field: uploaded_name(path) for field, path in request.files.items()}
    return replace(request, **{field: name for field, name in names.items() if name is not None})


def _read_questions(
    request: RunRequest, system: ConfiguredSystem, corpora: Mapping[str, Corpus]
) -> tuple[tuple[Question, ...], int]:
    """The questions of the request's file, and how many of their gold paragraphs the corpora lack; or the one asked."""
    if request.asked is not None:
        return (request.asked,), 0
    path, official = Path(request.questions), Path(request.official) if request.official else None
    lookup = partial(paragraphs_in, corpora.values())
    questions = load_questions(request.dataset, path, lookup if corpora else None, official, request.map)[
        : request.limit
    ]
    if not corpora:
        return questions, 0
    if system.needs.evidence:
        check_evidence(questions, path)
    titled = partial(titled_in, corpora.values())
    questions = located(questions, titled, snippets=form_of(request.dataset, path, request.map).snippets)
    return questions, len(coverage(questions, titled, lookup).missing)


def submit(engine: Engine, prepared: PreparedRun) -> str:
    """Records the run with all of its repeats, which workers then carry out; returns its id, the first one's."""
    return submission.submit_together(engine, prepared.runs, prepared.questions, find_system)[0]


def submit_asked(engine: Engine, prepared: PreparedRun) -> AskedQuestion:
    """Records the run of a question that somebody waits for."""
    [question] = prepared.questions
    row, messages = submission.submit_asked(engine, prepared.submission, question, find_system)
    run = prepared.submission.id
    return AskedQuestion(run=run, id=row, messages=tuple(messages), warnings=prepared.warnings)


def _open_corpora(system: ConfiguredSystem, names: Sequence[str]) -> dict[str, Corpus]:
    """The corpora that a run names, of which a system that searches must have one."""
    if system.needs.corpus and not names:
        raise InputError(
            f"the system {system.spec.name} searches a corpus; name one with --corpus, or as `corpus` in a file "
            "(`cotrail index` makes one)"
        )
    seen = seen_corpora()
    return {seen.stored(name): seen.open(name) for name in names}


def in_random_order(questions: Sequence[Question], seed: int) -> tuple[Question, ...]:
    """The questions in an order that this seed draws."""
    return tuple(Random(seed).sample(questions, len(questions)))  # noqa: S311 - no secret


def check_measurable(rule: StopRule, submission: Submission, questions: Sequence[Question]) -> None:
    """Raises InputError where no question has the metric of the rule, whatever the run's answers will be."""
    score = scorer(submission, recorded_system, [rule.metric])
    if all(score(unanswered(each))[rule.metric] is None for each in questions):
        raise InputError(
            f"{rule} can't stop this run: none of its questions has {rule.metric}, since the dataset publishes nothing "
            "to compare with, or the run gives no answers; name another metric or leave `until` out"
        )


# Runs that were submitted, and what is to be said of them.


class SubmittedRun(Struct, frozen=True, kw_only=True):
    """A run that was submitted: the number of its questions, and the digest of its plan."""

    run: str
    questions: int
    plan: str
    name: str | None = None


class Submitted(Struct, frozen=True, kw_only=True):
    """All repeats of a run.

    reading: how the file of questions is read, with its fields; None of what was submitted before that was recorded.
    warnings: what it lacks, or has another thing for; waves: what its batches take, where it is asked in batches.
    namesakes: of each run the others that have its name, so that this finds none of them.
    """

    runs: tuple[SubmittedRun, ...]
    reading: str | None = None
    warnings: tuple[str, ...] = ()
    waves: str | None = None
    namesakes: dict[str, tuple[str, ...]] = {}


# Runs that were submitted, as their submission is answered.


def read_submission(connection: Connection, ids: Sequence[str], warnings: Sequence[str] | None = None) -> Submitted:
    """What there is to say of these runs, all repeats of one; where no warnings are given, those that are recorded."""
    records = [read_run(connection, each) for each in ids]
    labels = read_labels(connection, ids)
    names = {each: labels.get(each, NO_LABELS).name for each in ids}
    first = records[0]
    return Submitted(
        runs=tuple(
            SubmittedRun(
                run=record.id,
                questions=record.size,
                plan=plan_digest(record.provenance[PLAN]),
                name=names[record.id],
            )
            for record in records
        ),
        reading=first.provenance.get(READING),
        warnings=warnings_of(first) if warnings is None else tuple(warnings),
        waves=waves_in_words(first.system, first.system_version, first.settings) if first.batched else None,
        namesakes={run: tuple(namesakes(connection, run, name)) for run, name in names.items() if name},
    )


def warnings_of(record: RunRecord) -> tuple[str, ...]:
    """What is recorded of what a run lacks, or has another thing for."""
    return tuple(record.provenance.get(STAND_INS, ()))


# Whether workers on other hosts have the keys of a run's served models: they are asked, by the variables' names.


def check_worker_keys(app: Callable[[], Any], binding: Binding) -> tuple[str, ...]:
    """Asks the workers of a deployment whether the variables of a run's keys are set; returns what is to be said of it.

    The local stack's have this process's environment, so that `check_key` has said. Takes a few seconds at most, and
    none where no model needs a key. app: makes the Celery app.
    Raises InputError where workers generate and none of them has a key.
    """
    wanted = tuple(dict.fromkeys(_key_variables(binding)))
    if not wanted or settings().database_url is None:
        return ()
    present = call(app(), settings().broker, wanted).present
    generating = [each for each in present if set(each.kinds) & set(carried_out_by("generation"))]
    if not generating:
        names = " and ".join(wanted)
        return (f"no worker that generates answers, so it isn't known whether {names} is set where they start",)
    return tuple(filter(None, (_note(variable, generating) for variable in wanted)))


def _note(variable: str, generating: list[Present]) -> str:
    """What is to be said where some of these workers lack a variable; InputError where all do."""
    lacking = [each for each in generating if variable not in each.variables]
    hosts = ", ".join(sorted({each.host for each in lacking}))
    if len(lacking) == len(generating):
        raise InputError(
            f"the environment variable {variable}, which holds the key of a model, isn't set in any worker that "
            f"generates ({count(len(generating), 'worker')} on {hosts}): set it where they start, start them again, "
            "then submit again"
        )
    if not lacking:
        return ""
    return (
        f"{variable} isn't set in {len(lacking)} of {count(len(generating), 'worker')} that generate ({hosts}): a step "
        "of this model that one of them takes blocks its question"
    )


def _key_variables(binding: Binding) -> Iterator[str]:
    """The variables of the keys of all language models that a run pins."""
    path = settings().catalogue_path
    known = catalogue(path)
    for identity in (binding.model, *binding.pins.values()):
        name = identity.rpartition("@")[0]
        # A pin may be that of an engine of another kind, whose name a malformed table of a model has too.
        listed = known[name] if name in known else find_model(path, name) if provided(name) is not None else None
        engine = listed and listed.engine
        if isinstance(engine, Endpoint) and engine.key_variable:
            yield engine.key_variable


def _submitted_before(runs: Sequence[str]) -> Submitted:
    with reading() as connection:
        return read_submission(connection, runs)


@operation("runs.submit", "POST", "/runs", Scope.SUBMIT, status=201, replayed=_submitted_before)
def submit_run(request: RunRequest, app: App = current_app) -> Submitted:
    """Submit a run to the queue. Everything is checked before anything is written."""
    prepared = prepare(request)
    warnings = (*prepared.warnings, *check_worker_keys(app, prepared.submission.binding))
    with open_store() as engine:
        submit(engine, prepared)
    with reading() as connection:
        return read_submission(connection, [run.id for run in prepared.runs], warnings)
