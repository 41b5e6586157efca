"""Submission of runs: everything that a request names is checked before anything is written."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Engine

from cotrail.common.unusual_fields import without_unused
from cotrail.core.ports.retriever import Corpus
from cotrail.core.questions import Question
from cotrail.data.corpora.several import paragraphs_in, titled_in
from cotrail.data.datasets.loading import form_of, load_questions
from cotrail.errors import InputError
from cotrail.evaluation.metrics.corpus_coverage import coverage, located
from cotrail.evaluation.metrics.scorers import scorer
from cotrail.evaluation.metrics.stop_rules import UNTIL, StopRule, parse_rule, rule_of
from cotrail.models.commands import submission
from cotrail.models.commands.new_runs import Submission
from cotrail.models.queries.outcomes import unanswered
from cotrail.services.access.corpora import seen_corpora
from cotrail.services.data.uploaded_files import uploaded_name
from cotrail.services.runs.asked_question import AskedQuestion
from cotrail.services.runs.composing import check_evidence, compose
from cotrail.services.runs.planning import read_stated, with_plans
from cotrail.services.runs.prepared_run import PreparedRun
from cotrail.services.runs.provenance import file_record
from cotrail.services.runs.repeats import are_alike, repeated
from cotrail.services.runs.requests import LABEL_FIELDS, PATH_FIELDS, RunRequest
from cotrail.services.runs.runnable import check_splitter
from cotrail.services.runs.shots import make_shots, read_shown, read_words
from cotrail.services.runs.system_settings import ConfiguredSystem, check_answers, configure
from cotrail.systems.registry import find_system, recorded_system


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
    later = ("corpora", "question_budget", "run_budget", "serving", "repeat", "until", "plan")
    written = without_unused(_as_recorded(request), *later)
    kept = written.keys() - {*LABEL_FIELDS, "question"}
    return {
        "request": {key: value for key, value in written.items() if key in kept},
        **({UNTIL: str(parse_rule(request.until))} if request.until is not None else {}),
        "files": {field: file_record(path) for field, path in request.files.items()},
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
    questions = load_questions(request.dataset, path, lookup if corpora else None, official)[: request.limit]
    if not corpora:
        return questions, 0
    if system.needs.evidence:
        check_evidence(questions, path)
    titled = partial(titled_in, corpora.values())
    questions = located(questions, titled, snippets=form_of(request.dataset, path).snippets)
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
            f"the system {system.spec.name} searches a corpus; name its `corpus` (`cotrail index` makes one)"
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
