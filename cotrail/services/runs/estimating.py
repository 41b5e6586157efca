"""Estimates of runs before anything is spent: by the limits of their systems, and by what earlier runs took."""

from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from math import ceil
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection

from cotrail.core.actions.registry import has_prompt
from cotrail.core.binding import MODEL
from cotrail.core.demonstrations import Demonstrations
from cotrail.core.money import ModelPrice, Usage
from cotrail.core.questions import Question
from cotrail.core.search_ways import pinned_way
from cotrail.models.commands.new_runs import Submission
from cotrail.models.queries.outcomes import Measured, read_measured
from cotrail.services.access.grants import find_granted_model
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs import submission
from cotrail.services.runs.requests import RunRequest
from cotrail.services.runs.resolving import prices_of
from cotrail.services.runs.submission import PreparedRun
from cotrail.services.store import reading
from cotrail.systems.parts.rules import StepBound
from cotrail.systems.registry import find_system

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
    prepared = submission.prepare(request)
    with reading() as connection:
        return estimate(connection, prepared)
