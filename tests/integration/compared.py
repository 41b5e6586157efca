"""Runs to compare: the same questions, answered as a test says, on a real store."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Engine

from benchmarks.contenders.cotrail import submission
from benchmarks.costless import HITS
from cotrail.core.actions.generate import Read
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.questions import Question
from cotrail.core.results import Generated, Result, Retrieved
from cotrail.models.commands.submission import submit
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.runs import PRICES
from cotrail.systems.registry import find_system
from tests.integration.stepping import LEASE, close_runs, unsent

RIGHT, HALF, WRONG = "Ada Brenn", "Ada", "nobody"
"""Answers: of EM 1 and F1 1; of EM 0 and F1 2/3; of 0 and 0."""

RATES = {"input": "1", "cached": "1", "cache_written": "1", "output": "10"}
PRICED = {PRICES: {"model": {"rates": [RATES], "source": "models.toml"}}}
"""A dollar for a million tokens read, ten for a million written."""


def asked(number: int) -> list[Question]:
    """Questions of two kinds, of which every third is `hard`."""
    return [
        Question(
            id=f"q{n}", text=f"Who built number {n}?", answers=(RIGHT,), kinds={"level": "easy" if n % 3 else "hard"}
        )
        for n in range(number)
    ]


def answered(
    engine: Engine,
    run: str,
    answers: Sequence[str],
    *,
    system: str = "one-step",
    questions: Sequence[Question] | None = None,
    tokens: int | Mapping[str, int] = 10,
    found: int = 2,
    provenance: Mapping[str, Any] = PRICED,
    ending: int | None = None,
) -> str:
    """A run that answers its questions so; tokens: written in each, or by the question's text.

    found: paragraphs by its searches.
    ending: only the first so many questions are answered, and the run stays open; all are where None.
    """
    spec = find_system(system)
    given = replace(
        submission(),
        id=run,
        system=spec.name,
        system_version=spec.version,
        settings=msgspec.to_builtins(spec.settings()),
        provenance=dict(provenance),
    )
    questions = asked(len(answers)) if questions is None else questions
    submit(engine, given, list(questions), find_system)
    wanted = {question.text: answer for question, answer in zip(questions, answers, strict=True)}
    work(engine, wanted, tokens, found, range(len(answers) if ending is None else ending))
    if ending is None:
        assert close_runs(engine) == [run]
    return run


def work(
    engine: Engine, wanted: Mapping[str, str], tokens: int | Mapping[str, int], found: int, positions: Sequence[int]
) -> None:
    """Carries out the steps of the questions at these positions of the run submitted last."""
    ledger = Ledger(engine, "hands", LEASE, find_system)
    first = [message for kind in ("retrieve", "read") for message in unsent(engine, kind)]
    by_question = sorted(first, key=lambda message: message.step_id)
    messages = [by_question[position] for position in positions]
    while messages:
        claims = [claim for claim in ledger.claim(messages) if claim is not None]
        done = [Completion(claim=each, outcome=outcome(each, wanted, tokens, found), milliseconds=2) for each in claims]
        messages = [message for following in ledger.commit(done) for message in following]


def outcome(claim: Claim, wanted: Mapping[str, str], tokens: int | Mapping[str, int], found: int) -> Result:
    """What a step's worker would have got."""
    action = claim.action
    if isinstance(action, Retrieve):
        return Retrieved(hits=HITS[:found])
    assert isinstance(action, Read)
    answer = wanted[action.prompt.question]
    return Generated(
        text=answer,
        raw=answer,
        demonstrations=len(action.prompt.demonstrations.items),
        paragraphs=len(action.prompt.paragraphs),
        prompt_digest=action.prompt.digest,
        prompt_tokens=100,
        cached_prompt_tokens=0,
        generated_tokens=tokens if isinstance(tokens, int) else tokens[action.prompt.question],
    )
