"""Systems in this process: questions are answered without a server, a queue or a database.

Systems, engines, checks and the driver are the workers'. What is recorded stays in memory alone.
"""

import asyncio
import hashlib
import json
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import msgspec
from msgspec import structs

from cotrail.answers import LOCAL, Answered, Answers, asked_of_workers, run_by_workers, shown_progress
from cotrail.common.printable_text import storable
from cotrail.common.structs import common_fields
from cotrail.configuration.extensions import load_extensions, systems_folder
from cotrail.configuration.settings import settings
from cotrail.core.actions.registry import kind_of
from cotrail.core.budgets import Budgets, Consumed
from cotrail.core.history import Failed, Finished, Halt, Outcome, Recorded, Step, consumed_by, ended_by
from cotrail.core.ports.cancellation import Cancellation, Interrupted
from cotrail.core.questions import Paragraph, Question, paragraphs_of
from cotrail.core.replay import Replay, SystemBrokenError, advance
from cotrail.core.results import Failure, Result, failure_of
from cotrail.core.system import System
from cotrail.data.corpora.building import file_digest
from cotrail.engines.rate_limits import ProcessLimiter
from cotrail.engines.retrieval.engine import NewIndex
from cotrail.errors import InputError, ReplayMismatchError
from cotrail.models.queries.traces import Collected, TracedQuestion, TracedStep
from cotrail.models.records.runs import BUDGETS, RunBasics, RunPlan, read_prices
from cotrail.models.schema.states import QuestionStatus, StepState
from cotrail.services.access.grants import GIVEN, seen_corpora
from cotrail.services.library.corpora import Indexed
from cotrail.services.library.corpora import index as index_files
from cotrail.services.results.questions import shown_question
from cotrail.services.runs.requests import AskRequest, make_ask_request, make_request
from cotrail.services.runs.resolving import with_corpus
from cotrail.services.runs.submission import PreparedRun, prepare
from cotrail.systems import own
from cotrail.systems.registry import SYSTEMS, find_system
from cotrail.systems.spec import SystemSpec
from cotrail.tasks.engines import LoadedEngines, StepEngines
from cotrail.tasks.failures import Fail, Hold, Retry, Wait, verdict

Records = Sequence[Mapping[str, Any] | Paragraph]
"""Paragraphs: of `title` and `text`, and of an `id` where they have one."""

AnyCorpus = str | Path | Records
"""A corpus by its name, its file, or its paragraphs."""

AnySystem = str | SystemSpec | Callable[..., System]
"""A system by its name, its file (`FILE.py` or `FILE.py:NAME`), its record, or the function that it is."""

AWAY_SECONDS = 3.0
"""How long a step waits for an engine that is away and doesn't say how long."""

HERE = "@here"
"""What the name of a system has that is only in this process."""


def ask(
    system: AnySystem,
    question: str,
    *,
    corpus: AnyCorpus | None = None,
    model: str | None = None,
    server: str | None = None,
    **fields: Any,
) -> Answered:
    """Answer a question: in this process, or by the workers of a server.

    corpus: the name of one that is indexed, a file, or paragraphs; the only one that there is without it. model: as
    `cotrail models` lists them, the default without it. fields: others of a run file, such as `retrieval_count`.
    server: a service's URL, its name in `servers.toml`, or `local` for this machine's stack.
    Raises InputError and its kinds, BlockedError where a model or a corpus isn't there, UnavailableError.
    """
    values = {"question": storable(question), **_named(system, corpus, model, server), **fields}
    if server is not None:
        return asked_of_workers(server, values)
    request: AskRequest = make_ask_request(values, {})
    return InProcessRun(prepare(with_corpus(request))).all(1, lambda *_: None).answered[0]


async def ask_async(system: AnySystem, question: str, **fields: Any) -> Answered:
    """The same for asynchronous code: the question is answered in a thread."""
    return await asyncio.to_thread(ask, system, question, **fields)


def run(
    system: AnySystem,
    questions: str | Path | Iterable[str | Mapping[str, Any]],
    *,
    corpus: AnyCorpus | None = None,
    model: str | None = None,
    at_once: int = 4,
    progress: Callable[[int, int], None] | None = None,
    server: str | None = None,
    **fields: Any,
) -> Answers:
    """Answer questions, of which so many are under way at once in this process; a server's workers have their own.

    questions: a file, which `dataset` among the fields may name the form of; or texts, or records as a file of JSON
    lines has them (`id`, `question`, `answers`). progress: called with how many have ended, and of how many; a notebook
    shows it without that. Arguments and errors are else those of `ask`; a question that fails is among the answers.
    """
    progress = progress or shown_progress()
    if server is None:
        return InProcessRun(prepared_run(system, questions, corpus, model, fields)).all(at_once, progress)
    with _values(system, questions, corpus, model, server, fields) as values:
        return run_by_workers(server, values, progress)


def prepared_run(
    system: AnySystem,
    questions: str | Path | Iterable[str | Mapping[str, Any]],
    corpus: AnyCorpus | None,
    model: str | None,
    fields: Mapping[str, Any],
) -> PreparedRun:
    """What `run` carries out here, checked."""
    with _values(system, questions, corpus, model, None, fields) as values:
        return prepare(make_request(values, {}))


@contextmanager
def _values(
    system: AnySystem,
    questions: str | Path | Iterable[str | Mapping[str, Any]],
    corpus: AnyCorpus | None,
    model: str | None,
    server: str | None,
    fields: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """The fields of a request for a run, whose questions are in a file."""
    with _folder("questions.jsonl", "the given questions") as path:
        if not isinstance(questions, str | Path):
            questions = _written(path, questions)
        yield {"dataset": "jsonl", "questions": str(questions), **_named(system, corpus, model, server), **fields}


def index(given: str | Path | Records, name: str, **settings_: Any) -> Indexed:
    """Index a file, a folder, or paragraphs as the corpus of that name; settings: as `cotrail index --set`."""
    load_extensions()
    new = NewIndex(settings=settings_)
    if isinstance(given, str | Path):
        return index_files([Path(given)], name, new)
    with _folder("corpus.jsonl", "the given paragraphs") as path:
        path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in _records(tuple(given))))
        return index_files([path], name, new)


@contextmanager
def _folder(name: str, said: str) -> Iterator[Path]:
    """The path of a file in a folder for it; errors name what was given in place of the file."""
    with TemporaryDirectory(prefix="cotrail-") as folder:
        path = Path(folder, name)
        try:
            yield path
        except InputError as error:
            error.args = tuple(str(each).replace(str(path), said) for each in error.args)
            raise


# What is named, as requests name it.


def _named(system: AnySystem, corpus: AnyCorpus | None, model: str | None, server: str | None) -> dict[str, Any]:
    load_extensions()
    if server is not None and not isinstance(system, str):
        raise InputError("workers know systems by name or file, and not those of this process: put it into a file")
    if server not in (None, LOCAL) and not isinstance(corpus, str | None):
        raise InputError("a server searches the corpora that it has: name one, or index yours there (`cotrail index`)")
    named = {"system": _system_name(system), "corpus": _corpus_name(corpus), "model": model}
    return {name: value for name, value in named.items() if value is not None}


def _system_name(system: AnySystem) -> str:
    if isinstance(system, str):
        return own.installed(system, systems_folder(), warnings.warn) if own.is_file(system) else system
    spec = system if isinstance(system, SystemSpec) else own.system(system)
    if spec in SYSTEMS:
        return spec.name
    named = structs.replace(spec, name=f"{spec.name}{HERE}")
    SYSTEMS[:] = [each for each in SYSTEMS if each.name != named.name] + [named]  # as where a cell is run again
    return named.name


def _corpus_name(corpus: AnyCorpus | None) -> str | None:
    """The name of a corpus; a file or paragraphs are indexed, once, under a name of their content."""
    if corpus is None or (isinstance(corpus, str | Path) and not Path(corpus).is_file()):
        return None if corpus is None else str(corpus)
    given = Path(corpus) if isinstance(corpus, str | Path) else _paragraphs(corpus)
    digest = file_digest(given) if isinstance(given, Path) else hashlib.sha256(msgspec.json.encode(given)).digest()
    name = f"{GIVEN}{digest.hex()[:16]}"
    if name not in seen_corpora().manifests():
        index(given, name)
    return name


def _paragraphs(given: Records) -> list[Paragraph]:
    try:
        paragraphs = paragraphs_of(given)
        msgspec.json.encode(paragraphs)
        return paragraphs
    except (msgspec.ValidationError, TypeError, UnicodeEncodeError) as error:
        raise InputError(f"a corpus is paragraphs of `title` and `text` ({error}); correct them") from error


def _records(given: Records) -> Iterator[Mapping[str, Any] | Paragraph]:
    """The paragraphs with their ids, and with fields by which searches may filter."""
    for each, paragraph in zip(given, _paragraphs(given), strict=True):
        yield paragraph if isinstance(each, Paragraph) else {**each, "id": paragraph.id, "title": paragraph.title}


def _written(path: Path, questions: Iterable[str | Mapping[str, Any]]) -> Path:
    records = [{"question": each} if isinstance(each, str) else each for each in questions]
    if isinstance(questions, Mapping) or not all(isinstance(each, Mapping) for each in records):
        raise InputError("questions are a list of texts, or of records with a `question`; give such a list")
    path.write_text("".join(json.dumps({"id": str(place), **each}) + "\n" for place, each in enumerate(records, 1)))
    return path


# How questions are carried out.


@cache
def loaded_engines() -> LoadedEngines:
    """The engines of this process."""
    return LoadedEngines(settings(), ProcessLimiter())


class InProcessRun:
    """A run that was prepared, and is carried out here."""

    def __init__(self, prepared: PreparedRun) -> None:
        self.questions, self.submission = prepared.questions, prepared.submission
        given = prepared.submission.provenance
        self.plan = RunPlan(
            **common_fields(prepared.submission, RunBasics),
            shots=prepared.submission.shots,
            binding=prepared.submission.binding,
            shared_in=None,
            served=prepared.submission.served,
            prices=read_prices(given),
            budgets=msgspec.convert(given.get(BUDGETS, {}), Budgets),
        )
        self.engines = StepEngines(loaded_engines(), self.plan, Cancellation())
        self._stopping = Event()

    def all(self, at_once: int, progress: Callable[[int, int], None]) -> Answers:
        """All questions; an interruption cuts off what engines are doing."""
        if at_once < 1:
            raise InputError(f"at least one question is under way at once, and not {at_once}")
        ended: list[Answered] = []
        threads = ThreadPoolExecutor(at_once)
        try:
            for each in threads.map(self._answered, self.questions):
                ended.append(each)
                progress(len(ended), len(self.questions))
        except BaseException:
            self._stopping.set()
            loaded_engines().interrupt()
            loaded_engines.cache_clear()
            raise
        finally:
            threads.shutdown(cancel_futures=True)
        return Answers(answered=tuple(ended), submission=self.submission, questions=tuple(self.questions))

    def _answered(self, question: Question) -> Answered:
        return self.scored(InProcessQuestion(self.plan, self.engines, question, self._stopping).traced())

    def scored(self, traced: TracedQuestion) -> Answered:
        """A question that has ended with its scores."""
        return Answered(question=shown_question(self.submission, traced), traced=traced)


class InProcessQuestion:
    """A question and its steps so far."""

    def __init__(self, plan: RunPlan, engines: StepEngines, question: Question, stopping: Event) -> None:
        self._plan = plan
        self._stopping = stopping
        self._engines = engines
        self._question = question
        self._history: list[Recorded] = []
        self._steps: list[TracedStep] = []
        self._consumed = Consumed()

    def traced(self) -> TracedQuestion:
        """Carries out what the system asks for, to its end; where its code is at fault, the question has failed."""
        try:
            next(self.carried_out_whole(lambda _: False))
            raise AssertionError  # never reached: it asks for nothing
        except StopIteration as stopped:
            return self.ended(stopped.value)
        except (SystemBrokenError, ReplayMismatchError) as error:
            return self.ended(Failed(failure_of(error)))

    def carried_out_whole(
        self, asks: Callable[[Step], bool]
    ) -> Generator[Step, tuple[Outcome, float], Finished | Failed]:
        """Carry out what is asked for; yields the steps that somebody else carries out, who sends the results."""
        opened, halt = self._plan.open(self._question.asked, find_system), None
        binding = self._plan.bound(self._question.id, self._question.kinds)
        replay = Replay(opened, binding, watched=self._plan.is_others)
        while not isinstance(following := replay.advance(self._history, halt), Finished | Failed):
            room = None if halt else self._plan.budgets.room(len(self._history))
            steps = following.steps[:room]
            ended = {}
            for step in filter(asks, steps):
                ended[step.sequence] = yield step
            own = [step for step in steps if step.sequence not in ended]
            with ThreadPoolExecutor(len(own)) if len(own) > 1 else nullcontext() as threads:
                carried_out = (threads.map if threads else map)(self._carried_out, own)
                ended |= zip((step.sequence for step in own), carried_out, strict=True)
            for step in steps:
                self._record(step, *ended[step.sequence])
            limit = self._plan.budgets.question.reached(self._consumed)
            if limit and halt is None:
                halt = Halt(after=len(self._history), limit=limit)
        replay.close()
        # Those of others may not be pure: a run that is continued asks them again, too.
        if self._plan.is_others and advance(opened, self._history, binding, halt) != following:
            raise ReplayMismatchError(len(self._history), "its answer", "another one")
        return following

    def _carried_out(self, step: Step) -> tuple[Outcome, float]:
        """How a step ended, and after how many milliseconds; raises what would block the question in a run."""
        started = time.perf_counter()
        for retries in count():
            if self._stopping.is_set():
                raise Interrupted
            try:
                result: Result = kind_of(step.action).carry_out(step.action, self._engines)
                result.check_recordable()
                return result, (time.perf_counter() - started) * 1000
            except Interrupted:
                raise
            except Exception as error:
                match verdict(error, retries, settings().max_attempts):
                    case Fail():
                        return failure_of(error), (time.perf_counter() - started) * 1000
                    case Retry(seconds) | Wait(seconds):
                        self._stopping.wait(seconds)
                    case Hold(seconds) if retries + 1 < settings().max_attempts:
                        self._stopping.wait(AWAY_SECONDS if seconds is None else seconds)
                    case _:
                        raise
        raise AssertionError  # never reached: the loop has no end

    def _record(self, step: Step, outcome: Outcome, milliseconds: float) -> None:
        kind, failure = kind_of(step.action), outcome if isinstance(outcome, Failure) else None
        self._history.append(Recorded(kind=kind.name, fingerprint=step.fingerprint, outcome=outcome))
        price = self._plan.prices.get(getattr(step.action, "model", ""))
        self._consumed += consumed_by(outcome, milliseconds, price)
        self._steps.append(
            TracedStep(
                sequence=step.sequence,
                kind=kind.name,
                state=StepState.FINISHED if failure is None else StepState.FAILED,
                worker=None,
                attempts=1,
                milliseconds=milliseconds,
                failure=failure,
                action=step.action,
                result=None if isinstance(outcome, Failure) else outcome,
            )
        )

    def ended(self, ended: Finished | Failed) -> TracedQuestion:
        question, answer = self._question, ended.answer if isinstance(ended, Finished) else None
        found = {hit.paragraph.digest: (step, hit) for step in reversed(self._steps) for hit in step.hits}
        collected = () if answer is None else (found[each.digest] for each in answer.paragraphs if each.digest in found)
        return TracedQuestion(
            key=question.id,
            text=question.text,
            answers=question.answers,
            gold=question.gold,
            pinned=question.pinned,
            kinds=question.kinds,
            status=QuestionStatus.FAILED if answer is None else QuestionStatus.FINISHED,
            answer=None if answer is None else answer.text,
            ended_by=ended_by(ended),
            reason=ended.failure if isinstance(ended, Failed) else None,
            sentences=() if answer is None else answer.sentences,
            collected=tuple(
                Collected(paragraph=h.paragraph, step=at.sequence, query=at.query or "", rank=h.rank, score=h.score)
                for at, h in collected
            ),
            steps=tuple(self._steps),
            details=None if answer is None else msgspec.to_builtins(answer.details),
        )
