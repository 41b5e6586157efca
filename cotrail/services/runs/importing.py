"""Importing runs: transcripts from elsewhere, and what `cotrail.run` recorded in another process.

All is recorded in one transaction and through the workers' own ledger, so that steps, answers and seals are those of
any run, and workers see nothing of it before it is whole. What was imported says so in its provenance.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Engine

from cotrail.core.actions.registry import KINDS
from cotrail.core.binding import Binding
from cotrail.core.questions import Question
from cotrail.core.results import Failure
from cotrail.core.system import Action
from cotrail.errors import InputError, UnknownNameError, UnknownVersionError
from cotrail.models.commands.submission import Submission, insert_run, open_run, question_row, record_questions
from cotrail.models.execution.leases import Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.traces import TracedQuestion
from cotrail.models.records.advancing import advance_questions
from cotrail.models.records.budgets import check_quota, lock_quota
from cotrail.models.records.questions import lock_questions
from cotrail.models.records.runs import IMPORTED, Runs
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.database import notify
from cotrail.services.library.transcripts import read_transcripts
from cotrail.services.runs.labels import labels_of, new_id
from cotrail.services.runs.pinning import file_record, versions, with_plan
from cotrail.services.store import open_store
from cotrail.systems import imported
from cotrail.systems.registry import find_system

AT_ONCE = 100
"""Questions that are recorded together."""

LEASE_SECONDS = 3600.0

Outcomes = Callable[[Action], tuple[Any, float]]
"""How the next step of a question ended, and after how many milliseconds; raises InputError where there is none."""


class ImportedRun(Struct, frozen=True, kw_only=True):
    """A run that was imported."""

    run: str
    questions: int
    steps: int


class SavedStep(Struct, frozen=True, kw_only=True):
    """A step as `cotrail.Answers.save` writes it; result: in the form of its kind's class, None where it failed."""

    kind: str
    milliseconds: float
    result: Any = None
    failure: Failure | None = None


class SavedQuestion(Struct, frozen=True, kw_only=True):
    """A question with its steps, a line of such a file; the first line is the run's `Submission`."""

    question: Question
    steps: tuple[SavedStep, ...]


Progress = Callable[[int, int], None]
"""Called with how many questions are recorded, and of how many."""


def import_file(
    path: Path,
    *,
    name: str | None = None,
    model: str = "unknown",
    dataset: str = "jsonl",
    progress: Progress = lambda *_: None,
) -> ImportedRun:
    """Record what a file says as a run; model, dataset: what transcripts are of, for tables and for the scoring.

    Raises InputError, with the place, where it can't be taken; nothing is recorded then.
    """
    file = file_record(path)
    with path.open("rb") as content:
        is_saved = content.read(len(BEGINNING)) == BEGINNING
    if is_saved:
        submission, lines = _saved(path)
        asked = [(line.question, _saved_outcomes(line)) for line in lines]
    else:
        submission = Submission(
            id="",
            system=imported.SPEC.name,
            system_version=imported.SPEC.version,
            settings={},
            model_name=model,
            embedder_name="",
            entailer_name="",
            batched=False,
            dataset=dataset,
            provenance=versions(),
            binding=Binding(model=f"{model}@{file['sha256']}", profile="fast", temperature=0.0, seed=0),
            shots={},
            cell=None,
            served=True,
        )
        asked = [(each, _told_outcomes(each)) for each in read_transcripts(path)]
    provenance = {**submission.provenance, IMPORTED: file}
    given = replace(submission, id=new_id(submission.system), provenance=provenance, labels=labels_of(name, ()))
    planned = with_plan(given, [question for question, _ in asked])
    with open_store() as engine, engine.begin() as connection:
        return _Import(connection, planned).record(asked, progress)


def _told_outcomes(question: Question) -> Outcomes:
    transcript = msgspec.json.decode(str(question.evidence[0]), type=imported.Transcript)
    messages = transcript.steps()
    return lambda action: (imported.result_of(next(messages), action), 0.0)


BEGINNING = b'{"cotrail-run":'
"""How the files of `saved` begin, and no transcript."""


def saved_question(question: Question, traced: TracedQuestion) -> SavedQuestion:
    """A question that has ended, as such a file has it."""
    steps = (
        SavedStep(kind=each.kind, milliseconds=each.milliseconds or 0.0, result=each.result, failure=each.failure)
        for each in traced.steps
    )
    return SavedQuestion(question=question, steps=tuple(steps))


def saved(submission: Submission, questions: Iterable[SavedQuestion]) -> Iterator[bytes]:
    """The lines of a file that `import_file` takes."""
    yield BEGINNING + msgspec.json.encode(submission) + b"}\n"
    yield from (msgspec.json.encode(each) + b"\n" for each in questions)


def continues(line: bytes, submission: Submission) -> bool:
    """Whether the first line of such a file is that of an equal run, apart from when it began."""
    try:
        head = _head(line.strip())
    except msgspec.DecodeError:
        return False
    return replace(head, id="", provenance={}) == replace(submission, id="", provenance={})


def _head(line: bytes) -> Submission:
    return msgspec.json.decode(line.removeprefix(BEGINNING).removesuffix(b"}"), type=Submission)


def _saved(path: Path) -> tuple[Submission, list[SavedQuestion]]:
    first, *lines = path.read_bytes().splitlines()
    try:
        head = _head(first)
        questions = [msgspec.json.decode(line, type=SavedQuestion) for line in lines]
    except msgspec.DecodeError as error:
        raise InputError(f"{path} isn't whole, or of another version of cotrail ({error}); save it again") from error
    try:
        find_system(head.system, head.system_version)
    except (UnknownNameError, UnknownVersionError) as error:
        raise InputError(f"the system {head.system} is only in the process that asked it: ask by its file") from error
    return head, questions


def _saved_outcomes(line: SavedQuestion) -> Outcomes:
    steps = iter(line.steps)

    def outcome(action: Action) -> tuple[Any, float]:
        step = next(steps, None)
        kind = None if step is None else KINDS.get(step.kind)
        if step is None or kind is None or not isinstance(action, kind.action):
            raise InputError(
                f"question {line.question.id}: the file has other steps than the system asks for; import it with the "
                "version of cotrail, and of the system, that made it"
            )
        try:
            return step.failure or msgspec.convert(step.result, kind.result), step.milliseconds
        except msgspec.ValidationError as error:
            raise InputError(
                f"question {line.question.id}: the result of a {step.kind} step is damaged ({error})"
            ) from error

    return outcome


class _Within:
    """An engine all of whose transactions are parts of one that is under way."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        with self._connection.begin_nested():
            yield self._connection


class _Import:
    """A run that is being recorded."""

    def __init__(self, connection: Connection, submission: Submission) -> None:
        self._connection = connection
        self._submission = submission
        self._ledger = Ledger(cast("Engine", _Within(connection)), "import", LEASE_SECONDS, find_system)

    def record(self, asked: Sequence[tuple[Question, Outcomes]], progress: Progress) -> ImportedRun:
        """Record all of it."""
        quota = lock_quota(self._connection)
        insert_run(self._connection, self._submission, len(asked))
        opened, place, steps = open_run(self._connection, self._submission), 0, 0
        rest = iter(asked)
        while chunk := list(islice(rest, AT_ONCE)):
            rows = [question_row(self._submission.id, place + n, question) for n, (question, _) in enumerate(chunk)]
            recorded = record_questions(self._connection, rows, opened)
            outcomes = {row.id: chunk[row.position - place][1] for row in recorded}
            steps += self._carry_out(outcomes)
            place += len(chunk)
            progress(place, len(asked))
        check_quota(self._connection, quota, [self._submission.provenance])
        notify(self._connection, self._submission.id)
        return ImportedRun(run=self._submission.id, questions=len(asked), steps=steps)

    def _carry_out(self, outcomes: dict[int, Outcomes]) -> int:
        """Record the steps of these questions, wave by wave, to their ends; returns how many there were."""
        locked, count = lock_questions(self._connection, outcomes), 0
        following = advance_questions(self._connection, Runs(find_system), locked)
        wave: list[Dispatch] = [each for messages in following.values() for each in messages]
        while wave:
            claims = [each for each in self._ledger.claim(sorted(wave, key=lambda each: each.step_id)) if each]
            done = [
                Completion(claim=claim, outcome=outcome, milliseconds=took)
                for claim in claims
                for outcome, took in [outcomes[claim.question_id](claim.action)]
            ]
            count += len(done)
            wave = [each for messages in self._ledger.commit(done) for each in messages]
        return count
