"""Judged runs in a store: a run of six questions, and judges that say what a test has them say."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Engine, select

from benchmarks.contenders.cotrail import submission
from benchmarks.costless import ANSWER, PARAGRAPHS
from cotrail.core.actions.generate import Judge, Read
from cotrail.core.binding import Binding
from cotrail.core.history import Outcome
from cotrail.core.questions import JudgedAnswer, Question
from cotrail.core.results import Failure, Generated
from cotrail.models.commands.submission import submit
from cotrail.models.execution.leases import Claim
from cotrail.models.execution.ledger import Ledger
from cotrail.models.schema.tables import questions
from cotrail.systems.judge.rubric import built_in
from cotrail.systems.judge.system import SPEC, JudgeSettings
from cotrail.systems.registry import find_system
from tests.integration.stepping import LEASE, admit_all, close_runs, completed, executed, unsent

RUN, OTHER = "answers", "others"
KEYS = ("q0", "q1", "q2", "q3", "q4", "q5")
ANSWERED = KEYS[:5]
FAILURE = Failure(type="StepError", message="it can't be searched for")
UNREADABLE = Failure(type="UnansweredError", message="no verdict could be read")

Said = Mapping[str, Any] | Failure
"""What a judge answers, or why it can't."""


def answer(engine: Engine, run: str = RUN, text: str = ANSWER) -> str:
    """A run of six questions, of which the last one has failed and the others have this answer."""
    asked = [
        Question(
            id=key, text=f"Where is {key}?", answers=(ANSWER,), kinds={"type": "bridge" if key < "q3" else "tunnel"}
        )
        for key in KEYS
    ]
    submit(engine, replace(submission(), id=run, provenance={"cotrail": "0"}), asked, find_system)
    ledger = Ledger(engine, "w", LEASE, find_system)
    *messages, last = unsent(engine)
    [claim] = ledger.claim([last])
    ledger.commit([completed(claim, FAILURE)])
    while messages:
        claims = [claim for claim in ledger.claim(messages) if claim is not None]
        done = [completed(claim, _reading(claim, text)) for claim in claims]
        messages = [message for following in ledger.commit(done) for message in following]
    assert close_runs(engine) == [run]
    return run


def judge(
    engine: Engine,
    say: Callable[[str, Judge], Said | None],
    *,
    name: str,
    rubric: str = "correct",
    model: str = "m",
    of: tuple[str, ...] = (RUN,),
    keys: tuple[str, ...] = ANSWERED,
) -> str:
    """A judge of one or two runs; say: what it answers about a question, None where it hasn't answered yet."""
    settings = JudgeSettings(rubric=built_in(rubric), runs=of)
    described = replace(
        submission(),
        id=name,
        system=SPEC.name,
        system_version=SPEC.version,
        settings=msgspec.to_builtins(settings),
        model_name=model,
        binding=Binding(model=f"{model}@d1", profile="fast", temperature=0, seed=0),
        shots={},
        provenance={"cotrail": "0"},
    )
    asked = [_judged(engine, key, of, rubric) for key in keys]
    submit(engine, described, asked, find_system)
    ledger = Ledger(engine, "w", LEASE, find_system)
    messages = unsent(engine, "judge")
    while messages:
        claims = [claim for claim in ledger.claim(messages) if claim is not None]
        done = [(claim, said) for claim in claims if (said := say(_key(engine, claim), _action(claim))) is not None]
        following = ledger.commit([completed(claim, _outcome(claim, said)) for claim, said in done])
        messages = [message for each in following for message in each]
        admit_all(engine)
    close_runs(engine)
    return name


def verdicts(said: Mapping[str, Said]) -> Callable[[str, Judge], Said | None]:
    """What a judge answers, by question."""
    return lambda key, _: said.get(key)


def verdict(name: str, confidence: int | None = None) -> Said:
    said = {"reasoning": f"It is {name}.", "verdict": name}
    return said if confidence is None else said | {"confidence": confidence}


def _judged(engine: Engine, key: str, runs: tuple[str, ...], rubric: str) -> Question:
    with engine.connect() as connection:
        rows = [
            connection.execute(select(questions).where(questions.c.run_id == run, questions.c.key == key))
            .mappings()
            .one()
            for run in runs
        ]
    paragraphs = tuple(PARAGRAPHS) if rubric == "faithful" else ()
    answers = tuple(
        JudgedAnswer(run=row["run_id"], digest=row["digest"], answer=row["answer"], paragraphs=paragraphs)
        for row in rows
    )
    return Question(id=key, text=rows[0]["text"], answers=tuple(rows[0]["answers"]), judged=answers)


def _reading(claim: Claim, text: str) -> Outcome:
    """The outcome of a step; of a reader's, this answer."""
    outcome = executed(claim)
    return (
        replace(outcome, text=text, raw=text)
        if isinstance(claim.action, Read) and isinstance(outcome, Generated)
        else outcome
    )


def _key(engine: Engine, claim: Claim) -> str:
    with engine.connect() as connection:
        return str(connection.execute(select(questions.c.key).where(questions.c.id == claim.question_id)).scalar_one())


def _action(claim: Claim) -> Judge:
    assert isinstance(claim.action, Judge)
    return claim.action


def _outcome(claim: Claim, said: Said) -> Generated | Failure:
    if isinstance(said, Failure):
        return said
    text = json.dumps(said)
    return Generated(
        text=text,
        raw=text,
        demonstrations=0,
        paragraphs=len(_action(claim).prompt.yielding),
        prompt_digest=_action(claim).prompt.digest,
        prompt_tokens=100,
        cached_prompt_tokens=0,
        generated_tokens=20,
    )
