"""Submission of runs: a request is resolved, checked and pinned before anything is written.

The four stages are modules: what is asked (`requests`), what it names (`resolving`), whether workers can carry it out
(`checking`), and what is stored of it (`pinning`). Forks, judges' runs and experiments (`forking`, `judging`,
`conducting`) find their inputs elsewhere and take the last two as they are.
"""

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import Connection, Engine

from cotrail.audit.run_check import PLAN, plan_digest
from cotrail.common.humanize import count
from cotrail.core.questions import Question
from cotrail.evaluation.metrics.stop_rules import rule_of
from cotrail.models.commands import submission
from cotrail.models.commands.new_runs import AskedQuestion, Submission
from cotrail.models.queries.runs import RunRecord, read_run
from cotrail.models.records.runs import NO_LABELS, READING, STAND_INS, namesakes, read_labels
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import App, current_app, operation
from cotrail.services.runs import pinning
from cotrail.services.runs.checking import check_worker_keys, checked
from cotrail.services.runs.progress import waves_in_words
from cotrail.services.runs.requests import RunRequest, check_files
from cotrail.services.runs.resolving import resolve
from cotrail.services.store import open_store, reading
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


# Runs that were submitted, and what is to be said of them.


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
