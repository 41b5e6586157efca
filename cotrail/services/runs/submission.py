"""Submission of runs: a request is resolved, checked and pinned before anything is written.

The four stages are modules: what is asked (`requests`), what it names (`resolving`), whether workers can carry it out
(`checking`), and what is stored of it (`pinning`). Forks, judges' runs and experiments (`forking`, `judging`,
`conducting`) find their inputs elsewhere and take the last two as they are.

An estimate of a run is by the limits of its system, and by what earlier runs took.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from math import ceil
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Engine

from cotrail.audit.run_check import PLAN, plan_digest
from cotrail.common.humanize import count
from cotrail.core.actions.registry import has_prompt
from cotrail.core.binding import MODEL
from cotrail.core.demonstrations import Demonstrations
from cotrail.core.money import ModelPrice, Usage
from cotrail.core.questions import Question
from cotrail.core.search_ways import pinned_way
from cotrail.evaluation.metrics.stop_rules import rule_of
from cotrail.models.commands import submission
from cotrail.models.commands.submission import AskedQuestion, Submission
from cotrail.models.queries.outcomes import Measured, read_measured
from cotrail.models.queries.runs import RunRecord, read_run
from cotrail.models.records.runs import NO_LABELS, READING, STAND_INS, namesakes, read_labels
from cotrail.services.access.grants import find_granted_model
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import App, current_app, operation
from cotrail.services.runs import pinning
from cotrail.services.runs.checking import check_worker_keys, checked
from cotrail.services.runs.progress import waves_in_words
from cotrail.services.runs.requests import RunRequest, check_files
from cotrail.services.runs.resolving import prices_of, resolve
from cotrail.services.store import open_store, reading
from cotrail.systems.parts.rules import StepBound
from cotrail.systems.registry import find_system

ALIKE = (
    "All repeats will be equal: nothing is sampled at temperature 0, and the profile is deterministic. A `temperature` "
    "above 0 or the profile `fast` lets them differ."
)


class PreparedRun(Struct, frozen=True, kw_only=True):
    """A run that can be submitted: all checks have passed.

    missing_gold: how many gold paragraphs of the questions the corpus lacks, which no system can then find.
    further: the same run with further seeds, where it is repeated.
    alike: whether those can't differ from it.
    """

    submission: Submission
    questions: tuple[Question, ...]
    missing_gold: int = 0
    further: tuple[Submission, ...] = ()
    alike: bool = False

    @property
    def runs(self) -> tuple[Submission, ...]:
        """All that are submitted: one, or each repeat."""
        return (self.submission, *self.further)

    @property
    def notes(self) -> tuple[str, ...]:
        """Where something replaces what the paper has, and why; and where repeats are in vain."""
        stand_ins = tuple(self.submission.provenance.get(STAND_INS, ()))
        return (*stand_ins, ALIKE) if self.alike else stand_ins

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the run lacks, before its notes."""
        if not self.missing_gold:
            return self.notes
        missing = (
            f"{count(self.missing_gold, 'gold paragraph')} of these questions not in the corpus "
            f"{' or '.join(self.submission.binding.corpora)}: paragraph recall can't reach 1. "
            "`cotrail data build` makes a corpus that has them."
        )
        return (missing, *self.notes)


def prepare(request: RunRequest) -> PreparedRun:
    """Checks all that the request names and reads its files; raises InputError and its kinds."""
    check_files(request)
    resolved = checked(resolve(request))
    pinned, questions = pinning.pin(resolved, pinning.provenance_of_request(request)), resolved.questions
    if rule := rule_of(pinned.provenance):
        questions = pinning.in_random_order(questions, request.seed)
        pinning.check_measurable(rule, pinned, questions)
    first, *further = pinning.with_plans(
        list(pinning.repeated(pinned, request.repeat)), questions, pinning.read_stated(request.plan)
    )
    return PreparedRun(
        submission=first,
        questions=questions,
        missing_gold=resolved.missing_gold,
        further=tuple(further),
        alike=request.repeat > 1 and pinning.are_alike(pinned, resolved.system.needs),
    )


def submit(engine: Engine, prepared: PreparedRun) -> str:
    """Records the run with all of its repeats, which workers then carry out; returns its id, the first one's."""
    return submission.submit_together(engine, prepared.runs, prepared.questions, find_system)[0]


def submit_asked(engine: Engine, prepared: PreparedRun) -> AskedQuestion:
    """Records the run of a question that somebody waits for."""
    [question] = prepared.questions
    row, messages = submission.submit_asked(engine, prepared.submission, question, find_system)
    run = prepared.submission.id
    return AskedQuestion(run=run, id=row, messages=tuple(messages), warnings=prepared.warnings)


class SubmittedRun(Struct, frozen=True, kw_only=True):
    """A run that was submitted: the number of its questions, and the digest of its plan."""

    run: str
    questions: int
    plan: str
    name: str | None = None


class Submitted(Struct, frozen=True, kw_only=True):
    """All repeats of a run.

    reading: how the file of questions is read, with its fields; None where there is no file.
    warnings: what it lacks, or has another thing for; waves: what its batches take, where it is asked in batches.
    namesakes: of each run the others that have its name, so that this finds none of them.
    """

    runs: tuple[SubmittedRun, ...]
    reading: str | None = None
    warnings: tuple[str, ...] = ()
    waves: str | None = None
    namesakes: dict[str, tuple[str, ...]] = {}


def read_submission(connection: Connection, ids: Sequence[str], warnings: Sequence[str] | None = None) -> Submitted:
    """What there is to say of these runs, all repeats of one; where no warnings are given, those that are recorded."""
    records = [read_run(connection, each) for each in ids]
    labels = read_labels(connection, ids)
    names = {each: labels.get(each, NO_LABELS).name for each in ids}
    first = records[0]
    return Submitted(
        runs=tuple(
            SubmittedRun(
                run=record.id, questions=record.size, plan=plan_digest(record.provenance[PLAN]), name=names[record.id]
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


@operation("runs.submit", "POST", "/runs", Scope.SUBMIT, status=201, replayed=read_submission)
def submit_run(request: RunRequest, app: App = current_app) -> Submitted:
    """Submit a run to the queue. Everything is checked before anything is written."""
    prepared = prepare(request)
    warnings = (*prepared.warnings, *check_worker_keys(app, prepared.submission.binding))
    with open_store() as engine:
        submit(engine, prepared)
    with reading() as connection:
        return read_submission(connection, [run.id for run in prepared.runs], warnings)


WORD_TOKENS = Decimal("1.5")
"""Tokens of a word, about: English has 1.3 in most vocabularies, names and numbers more."""


class EstimatedWork(Struct, frozen=True, kw_only=True):
    """What a run may take, all its questions together.

    steps: of every kind; usage: of the run's own language model.
    dollars: None where the model has no price, or none that is known; batch_dollars: the same in batches.
    """

    steps: int
    usage: Usage
    dollars: Decimal | None = None
    batch_dollars: Decimal | None = None


class Estimate(Struct, frozen=True, kw_only=True):
    """An estimate of a run; nothing is recorded of it.

    price: where the model's price is from; `unknown` where it is hosted and nobody says, empty where it costs nothing.
    most: by the limits of the system, with prompts as long as their paragraphs may be; None where it has no limits.
    expected: by the mean of earlier runs' questions (`measured`); None where there are none.
    """

    system: str
    dataset: str
    model: str
    questions: int
    price: str
    most: EstimatedWork | None
    expected: EstimatedWork | None
    measured: Measured | None


def estimate(connection: Connection, prepared: PreparedRun) -> Estimate:
    """The estimate of a run that could be submitted, with all of its repeats."""
    run, asked = prepared.submission, prepared.questions * len(prepared.runs)
    priced = _Priced(run)
    measured = read_measured(
        connection, system=run.system, version=run.system_version, dataset=run.dataset, model=run.model_name
    )
    return Estimate(
        system=run.system,
        dataset=run.dataset,
        model=run.model_name,
        questions=len(asked),
        price=priced.source,
        most=_most(run, asked, priced),
        expected=_expected(measured, len(asked), priced) if measured else None,
        measured=measured,
    )


class _Priced:
    """The language model of a run: its context, how much it may think, and its price as of now."""

    def __init__(self, run: Submission) -> None:
        model = find_granted_model(run.model_name)
        now, batch = (prices_of({MODEL: model}, batch=each) for each in (False, True))
        self.now, self.batch = now.get(MODEL), batch.get(MODEL)
        self.context: int | None = getattr(model.engine, "context", None)
        self.thought_tokens: int = getattr(model.engine, "thought_tokens", 0)
        self.source = self.now.source if self.now else "unknown" if MODEL in now else ""

    def work(self, steps: int, calls: Iterable[tuple[int, Usage]]) -> EstimatedWork:
        """The work of these calls, each with the length of its prompts."""
        parts = list(calls)
        return EstimatedWork(
            steps=steps,
            usage=sum((usage for _, usage in parts), Usage()),
            dollars=_cost(self.now, parts),
            batch_dollars=_cost(self.batch, parts),
        )


def _cost(price: ModelPrice | None, calls: Iterable[tuple[int, Usage]]) -> Decimal | None:
    if price is None:
        return None
    return sum((price.of_prompt(prompt).cost(usage) for prompt, usage in calls), Decimal())


def _most(run: Submission, questions: Iterable[Question], priced: _Priced) -> EstimatedWork | None:
    """The work by the limits of the run's system; None where it has none."""
    spec = find_system(run.system, run.system_version)
    read: Any = msgspec.convert(run.settings, spec.settings)
    counted: Counter[StepBound] = Counter()
    longest = 0
    for question in questions:
        bounds = spec.step_bounds(question, read)
        if bounds is None:
            return None
        longest = max(longest, len(question.text.split()))
        counted.update({each: each.times for each in (*bounds, *_ratings(bounds, run))})
    calls = (_call(each, times, longest, run, priced) for each, times in counted.items())
    return priced.work(counted.total(), (call for call in calls if call))


def _ratings(bounds: Iterable[StepBound], run: Submission) -> Iterator[StepBound]:
    """The ratings of what searches find, where the run reranks it."""
    if pinned_way(run.binding.pins).reranked:
        yield from (StepBound(kind="rate", times=each.times) for each in bounds if each.kind == "retrieve")


def _call(each: StepBound, times: int, question: int, run: Submission, priced: _Priced) -> tuple[int, Usage] | None:
    """The usage of so many steps with the length of each prompt; None for a kind without a prompt."""
    if not has_prompt(each.kind):
        return None
    shown = run.shots.get(each.form, Demonstrations()) if each.form else Demonstrations()
    prompt = ceil((each.words + question + len(shown.text.split())) * WORD_TOKENS)
    if priced.context is not None:
        prompt = min(prompt, max(priced.context - each.output, 0))
    thought = times * priced.thought_tokens
    output = times * each.output + thought
    return prompt, Usage(calls=times, input_tokens=times * prompt, output_tokens=output, thought_tokens=thought)


def _expected(measured: Measured, count: int, priced: _Priced) -> EstimatedWork:
    """The work of so many questions that take what the measured ones took on average."""
    names = Usage.__struct_fields__
    usage = Usage(**{name: ceil(getattr(measured.usage, name) * count / measured.questions) for name in names})
    prompt = ceil(usage.input_tokens / max(usage.calls, 1))
    return priced.work(ceil(measured.steps * count / measured.questions), [(prompt, usage)])


@operation("runs.estimate", "POST", "/runs/estimate", Scope.SUBMIT)
def estimate_run(request: RunRequest) -> Estimate:
    """Say what a run may take and cost, and don't submit it."""
    prepared = prepare(request)
    with reading() as connection:
        return estimate(connection, prepared)
