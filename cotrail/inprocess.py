"""Systems in this process: questions are answered without a server, a queue or a database.

Systems, engines, checks and the driver are the workers'. What is recorded stays in memory alone.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from html import escape
from itertools import count
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import msgspec
from msgspec import Struct, structs

from cotrail.common.structs import common_fields
from cotrail.configuration.extensions import load_extensions, systems_folder
from cotrail.configuration.settings import settings
from cotrail.core.actions.registry import kind_of
from cotrail.core.budgets import Budgets, Consumed
from cotrail.core.history import Failed, Finished, Halt, Outcome, Recorded, Step, consumed_by, ended_by
from cotrail.core.ports.cancellation import Cancellation, Interrupted
from cotrail.core.questions import Paragraph, Question, paragraphs_of
from cotrail.core.replay import Replay, SystemBrokenError
from cotrail.core.results import Failure, Result, failure_of
from cotrail.core.system import System
from cotrail.engines.rate_limits import ProcessLimiter
from cotrail.engines.retrieval.engine import NewIndex
from cotrail.errors import InputError, ReplayMismatchError
from cotrail.evaluation.metrics.question_scores import scorer
from cotrail.models.queries.traces import Collected, TracedQuestion, TracedStep
from cotrail.models.records.runs import BUDGETS, RunBasics, RunPlan, read_prices
from cotrail.models.schema.states import QuestionStatus, StepState
from cotrail.services.access.grants import seen_corpora
from cotrail.services.library.corpora import Indexed
from cotrail.services.library.corpora import index as index_files
from cotrail.services.results.steps import shown_steps
from cotrail.services.runs.asking import with_corpus
from cotrail.services.runs.requests import AskRequest, make_ask_request, make_request
from cotrail.services.runs.submission import PreparedRun, prepare
from cotrail.systems import own
from cotrail.systems.registry import SYSTEMS, find_system, recorded_system
from cotrail.systems.spec import SystemSpec
from cotrail.tasks.engines import LoadedEngines, StepEngines
from cotrail.tasks.failures import Fail, Hold, Retry, Wait, verdict

Records = Sequence[Mapping[str, Any] | Paragraph]
"""Paragraphs: of `title` and `text`, and of an `id` where they have one."""

AnySystem = str | SystemSpec | Callable[..., System]
"""A system by its name, its file (`FILE.py` or `FILE.py:NAME`), its record, or the function that it is."""

AWAY_SECONDS = 3.0
"""How long a step waits for an engine that is away and doesn't say how long."""

HERE = "@here"
"""What the name of a system has that is only in this process."""


class Answered(Struct, frozen=True, kw_only=True):
    """A question as it was answered: its answer, and every step. A notebook shows the steps.

    metrics: by name, of a question with published answers or paragraphs.
    """

    traced: TracedQuestion
    metrics: dict[str, float] = {}

    @property
    def answer(self) -> str:
        """The answer; empty where there is none, and where the question failed."""
        return self.traced.answer or ""

    @property
    def failure(self) -> Failure | None:
        """Why the question failed."""
        return self.traced.reason

    def row(self) -> dict[str, Any]:
        """The question as a row of a table."""
        traced = self.traced
        return {
            "id": traced.key,
            "question": traced.text,
            "answer": self.answer,
            "gold": list(traced.answers),
            "ended_by": traced.ended_by,
            "steps": len(traced.steps),
            **self.metrics,
        }

    def __str__(self) -> str:
        return self.answer

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{each.sequence}</td><td>{escape(each.view.verb)}</td><td>{escape(each.view.asked)}"
            f"{''.join(f'<br>{escape(part)}' for part in _parts(each.view.parts))}</td></tr>"
            for each in shown_steps(self.traced)
        )
        said = escape(self.answer) if self.failure is None else f"failed: {escape(self.failure.message)}"
        return f"<p>{escape(self.traced.text)} <b>{said}</b></p><table>{rows}</table>"


def _parts(parts: Iterable[Any]) -> Iterator[str]:
    for part in parts:
        yield from (f"{hit.rank}. {hit.paragraph.title}" for hit in getattr(part, "hits", ()))
        if text := getattr(part, "text", ""):
            yield text


class Answers(Struct, frozen=True, kw_only=True):
    """The questions of a run in their order. `rows` are a data frame of pandas or polars."""

    answered: tuple[Answered, ...]

    def __iter__(self) -> Iterator[Answered]:
        return iter(self.answered)

    def __len__(self) -> int:
        return len(self.answered)

    def rows(self) -> list[dict[str, Any]]:
        """A row a question, as `Answered.row`."""
        return [each.row() for each in self]

    @property
    def scores(self) -> dict[str, float]:
        """The mean of each metric that at least one question has."""
        names = dict.fromkeys(name for each in self for name in each.metrics)
        return {name: fmean(each.metrics[name] for each in self if name in each.metrics) for name in names}

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{value:.3f}</td></tr>" for name, value in self.scores.items())
        return f"<p>{len(self)} questions</p><table>{rows}</table>"


def ask(
    system: AnySystem, question: str, *, corpus: str | Records | None = None, model: str | None = None, **fields: Any
) -> Answered:
    """Answer a question.

    corpus: the name of one that is indexed, or paragraphs; the only one that there is without it. model: as
    `cotrail models` lists them, the default without it. fields: others of a run file, such as `retrieval_count`.
    Raises InputError and its kinds, BlockedError where a model or a corpus isn't there, UnavailableError.
    """
    values = {"question": question, **_named(system, corpus, model), **fields}
    request: AskRequest = make_ask_request(values, {})
    return _Running(prepare(with_corpus(request))).all(1, lambda *_: None).answered[0]


async def ask_async(system: AnySystem, question: str, **fields: Any) -> Answered:
    """The same for asynchronous code: the question is answered in a thread."""
    return await asyncio.to_thread(ask, system, question, **fields)


def run(
    system: AnySystem,
    questions: str | Path | Iterable[str | Mapping[str, Any]],
    *,
    corpus: str | Records | None = None,
    model: str | None = None,
    at_once: int = 4,
    progress: Callable[[int, int], None] | None = None,
    **fields: Any,
) -> Answers:
    """Answer questions, of which so many are under way at once.

    questions: a file, which `dataset` among the fields may name the form of; or texts, or records as a file of JSON
    lines has them (`id`, `question`, `answers`). progress: called with how many have ended, and of how many.
    Arguments and errors are else those of `ask`; a question that fails is among the answers.
    """
    with TemporaryDirectory(prefix="cotrail-") as folder:
        if not isinstance(questions, str | Path):
            questions = _written(Path(folder, "questions.jsonl"), questions)
        values = {"dataset": "jsonl", "questions": str(questions), **_named(system, corpus, model), **fields}
        prepared = prepare(make_request(values, {}))
    return _Running(prepared).all(at_once, progress or (lambda *_: None))


def index(given: str | Path | Records, name: str, **settings_: Any) -> Indexed:
    """Index a file, a folder, or paragraphs as the corpus of that name; settings: as `cotrail index --set`."""
    load_extensions()
    new = NewIndex(settings=settings_)
    if isinstance(given, str | Path):
        return index_files([Path(given)], name, new)
    with TemporaryDirectory(prefix="cotrail-") as folder:
        path = Path(folder, "corpus.jsonl")
        path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in _paragraphs(given)))
        return index_files([path], name, new)


# What is named, as requests name it.


def _named(system: AnySystem, corpus: str | Records | None, model: str | None) -> dict[str, Any]:
    load_extensions()
    named = {"system": _system_name(system), "corpus": _corpus_name(corpus), "model": model}
    return {name: value for name, value in named.items() if value is not None}


def _system_name(system: AnySystem) -> str:
    if isinstance(system, str):
        return own.installed(system, systems_folder()) if own.is_file(system) else system
    spec = system if isinstance(system, SystemSpec) else own.system(system)
    if spec in SYSTEMS:
        return spec.name
    named = structs.replace(spec, name=f"{spec.name}{HERE}")
    SYSTEMS[:] = [each for each in SYSTEMS if each.name != named.name] + [named]  # as where a cell is run again
    return named.name


def _corpus_name(corpus: str | Records | None) -> str | None:
    """The name of a corpus; paragraphs are indexed, once, under a name of their content."""
    if corpus is None or isinstance(corpus, str):
        return corpus
    paragraphs = _paragraphs(corpus)
    name = f"given-{hashlib.sha256(msgspec.json.encode(paragraphs)).hexdigest()[:16]}"
    if name not in seen_corpora().manifests():
        index(paragraphs, name)
    return name


def _paragraphs(given: Records) -> list[Paragraph]:
    try:
        return paragraphs_of(given)
    except (msgspec.ValidationError, TypeError) as error:
        raise InputError(f"a corpus is paragraphs of `title` and `text` ({error}); correct them") from error


def _written(path: Path, questions: Iterable[str | Mapping[str, Any]]) -> Path:
    records = ({"question": each} if isinstance(each, str) else each for each in questions)
    path.write_text("".join(json.dumps({"id": str(place), **each}) + "\n" for place, each in enumerate(records, 1)))
    return path


# How questions are carried out.


@cache
def _engines() -> LoadedEngines:
    return LoadedEngines(settings(), ProcessLimiter())


class _Running:
    """A run that was prepared, and is carried out here."""

    def __init__(self, prepared: PreparedRun) -> None:
        self._questions = prepared.questions
        given = prepared.submission.provenance
        self._plan = RunPlan(
            **common_fields(prepared.submission, RunBasics),
            shots=prepared.submission.shots,
            binding=prepared.submission.binding,
            shared_in=None,
            served=prepared.submission.served,
            prices=read_prices(given),
            budgets=msgspec.convert(given.get(BUDGETS, {}), Budgets),
        )
        self._engines = StepEngines(_engines(), self._plan, Cancellation())
        self._score = scorer(prepared.submission, recorded_system)
        self._stopping = Event()

    def all(self, at_once: int, progress: Callable[[int, int], None]) -> Answers:
        """All questions; an interruption cuts off what engines are doing."""
        if at_once < 1:
            raise InputError(f"at least one question is under way at once, and not {at_once}")
        ended: list[Answered] = []
        threads = ThreadPoolExecutor(at_once)
        try:
            for answered in threads.map(self._answered, self._questions):
                ended.append(answered)
                progress(len(ended), len(self._questions))
        except BaseException:
            self._stopping.set()
            _engines().interrupt()
            _engines.cache_clear()
            raise
        finally:
            threads.shutdown(cancel_futures=True)
        return Answers(answered=tuple(ended))

    def _answered(self, question: Question) -> Answered:
        traced = _Question(self._plan, self._engines, question, self._stopping).traced()
        scores = self._score(traced)
        return Answered(traced=traced, metrics={name: value for name, value in scores.items() if value is not None})


class _Question:
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
            return self._ended(self._carried_out_whole())
        except (SystemBrokenError, ReplayMismatchError) as error:
            return self._ended(Failed(failure_of(error)))

    def _replay(self) -> Replay:
        opened = self._plan.open(self._question, find_system)
        return Replay(opened, self._plan.binding, watched=self._plan.is_others)

    def _carried_out_whole(self) -> Finished | Failed:
        replay, halt = self._replay(), None
        while not isinstance(following := replay.advance(self._history, halt), Finished | Failed):
            room = None if halt else self._plan.budgets.room(len(self._history))
            steps = following.steps[:room]
            with ThreadPoolExecutor(len(steps)) if len(steps) > 1 else nullcontext() as threads:
                ended = (threads.map if threads else map)(self._carried_out, steps)
                for step, (outcome, took) in zip(steps, ended, strict=True):
                    self._record(step, outcome, took)
            limit = self._plan.budgets.question.reached(self._consumed)
            if limit and halt is None:
                halt = Halt(after=len(self._history), limit=limit)
        replay.close()
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

    def _ended(self, ended: Finished | Failed) -> TracedQuestion:
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
