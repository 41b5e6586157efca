"""Whatever a step results in, its end is recorded and nobody else's work is held up."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace
from psycopg import errors
from sqlalchemy import Engine, select
from sqlalchemy.exc import OperationalError

from benchmarks.contenders.cotrail import submission
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.questions import Hit, Paragraph
from cotrail.core.results import MOST_CHARACTERS, Generated, Retrieved
from cotrail.core.system import Answer, System, Together
from cotrail.models.commands.control import resume
from cotrail.models.commands.submission import submit
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import attempts, paragraph_sets, questions, steps
from cotrail.systems.registry import find_system
from cotrail.systems.spec import Needs, SystemSpec, find_spec
from tests.integration.conftest import Query
from tests.integration.stepping import LEASE, ask, begin, completed, run_to_end, unsent

pytestmark = pytest.mark.usefixtures("verified")


def hits(*paragraphs: Paragraph, score: Any = 1.0) -> Retrieved:
    return Retrieved(hits=tuple(Hit(paragraph=each, rank=rank, score=score) for rank, each in enumerate(paragraphs, 1)))


def paragraph(text: str = "text", title: str = "title", name: str = "p1") -> Paragraph:
    return Paragraph(id=name, title=title, text=text)


def claimed(engine: Engine, ledger: Ledger, asked: int = 1) -> list[Claim]:
    return [claim for claim in ledger.claim(begin(engine, asked)) if claim]


ODD: dict[str, Retrieved] = {
    "a NUL in a text": hits(paragraph("a\0b")),
    "a NUL in an id": hits(paragraph(name="\0")),
    "a score that is no number": hits(paragraph(), score="high"),
    "a score out of range": hits(paragraph(), score=10**400),
    "a score that isn't finite": hits(paragraph(), score=float("nan")),
    "a lone surrogate": hits(paragraph(name="\ud800")),
}


@pytest.mark.parametrize("found", ODD.values(), ids=ODD)
def test_a_result_that_the_database_refuses_is_recorded_as_its_steps_failure(
    engine: Engine, query: Query, found: Retrieved
) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    (claim,) = claimed(engine, ledger)
    ledger.record(Completion(claim=claim, outcome=found, milliseconds=1.0))
    (step,) = query(select(steps))
    assert (step["state"], step["failure"]["type"]) == ("failed", "UnrecordableError")
    assert step["failure"]["message"].startswith("the database takes no such result: ")
    assert [row["outcome"] for row in query(select(attempts))] == ["failed"]
    assert [row["status"] for row in query(select(questions))] == ["failed"]


def test_a_count_that_no_column_holds_is_recorded_as_a_failure(engine: Engine, query: Query) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    (claim,) = claimed(engine, ledger)
    [messages] = ledger.commit([completed(claim)])
    (reason,) = ledger.claim(messages)
    written = completed(reason).outcome
    assert isinstance(written, Generated)
    ledger.record(completed(reason, replace(written, generated_tokens=10**19)))
    assert query(select(steps.c.failure["type"].astext).where(steps.c.kind == "reason")) == [
        {"anon_1": "UnrecordableError"}
    ]


def test_four_paragraphs_as_large_as_a_result_may_be_are_stored(engine: Engine, query: Query) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    large = [paragraph(f"{number}" * (MOST_CHARACTERS // 5), title=f"{number}") for number in range(4)]
    (claim,) = claimed(engine, ledger)
    [messages] = ledger.commit([Completion(claim=claim, outcome=hits(*large), milliseconds=1.0)])
    assert len(messages) == 1
    assert len(query(select(paragraph_sets))) == 4


def test_what_is_too_much_for_one_transaction_is_written_in_several(
    engine: Engine, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    portions: list[int] = []
    commit = ledger._commit_portion

    def counted(portion: Sequence[Completion]) -> list[list[Dispatch]]:
        portions.append(len(portion))
        return commit(portion)

    monkeypatch.setattr(ledger, "_commit_portion", counted)
    monkeypatch.setattr("cotrail.models.execution.ledger.MOST_WRITTEN", MOST_CHARACTERS)
    large = [hits(paragraph(f"{number}" * (MOST_CHARACTERS * 2 // 5))) for number in range(5)]
    claims = claimed(engine, ledger, 5)
    outcomes = zip(claims, large, strict=True)
    messages = ledger.commit([Completion(claim=claim, outcome=each, milliseconds=1.0) for claim, each in outcomes])
    assert portions == [2, 2, 1]
    assert [len(each) for each in messages] == [1] * 5
    assert {row["state"] for row in query(select(steps).where(steps.c.kind == "retrieve"))} == {"finished"}


def test_where_it_can_not_be_said_what_follows_the_question_is_blocked(
    engine: Engine, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Panic(BaseException):
        """As libraries in Rust raise it."""

    def panicking(*_: object) -> None:
        raise Panic("index out of bounds")

    ledger = Ledger(engine, "w", LEASE, find_system)
    (claim,) = claimed(engine, ledger)
    monkeypatch.setattr(ledger, "_save_sentences", panicking)
    assert ledger.record(completed(claim)) == []
    (question,) = query(select(questions))
    assert (question["status"], question["reason"]["type"]) == ("blocked", "BlockedError")
    assert "index out of bounds" in question["reason"]["message"]
    assert [row["state"] for row in query(select(steps))] == ["blocked"]
    assert [row["outcome"] for row in query(select(attempts))] == ["blocked"]


class NoSettings(Struct, frozen=True):
    """A system without settings."""


def going_on(next_query: str, *_: Any) -> System:
    yield Retrieve(query="a", count=1)
    yield Retrieve(query=next_query, count=1)
    return Answer(text="x")


def answering(text: str, *_: Any) -> System:
    yield Together((Retrieve(query="a", count=1), Retrieve(query="b", count=1)))
    return Answer(text=text)


FOLLOWING: dict[str, Callable[[str], Callable[..., System]]] = {
    "a request": lambda text: partial(going_on, text),
    "an answer": lambda text: partial(answering, text),
}


@pytest.mark.parametrize("text", ["a\0b", "\ud800"], ids=["a NUL", "a lone surrogate"])
@pytest.mark.parametrize("follows", FOLLOWING)
def test_what_follows_a_result_and_can_not_be_stored_never_costs_the_result(
    engine: Engine, query: Query, follows: str, text: str
) -> None:
    def opening(said: str) -> SystemSpec:
        opened = FOLLOWING[follows](said)
        return SystemSpec(name="odd", version=1, title="odd", settings=NoSettings, open=opened, needs=lambda _: Needs())

    odd, fixed = (partial(find_spec, (opening(said),)) for said in (text, "c"))
    submit(engine, replace(submission(), system="odd", settings={}, system_version=1), ask(2), odd)
    ledger = Ledger(engine, "w", LEASE, odd)
    for claim in ledger.claim(unsent(engine)):
        assert ledger.record(completed(claim)) == []
    recorded = query(select(steps))
    assert {row["state"] for row in recorded} == {"finished"}
    assert {row["outcome"] for row in query(select(attempts))} == {"finished"}
    assert len(query(select(paragraph_sets))) == len(recorded)
    for _ in range(2):
        blocked = query(select(questions.c.status, questions.c.reason["message"].astext.label("said")))
        assert {row["status"] for row in blocked} == {"blocked"}
        refused = r"what follows can't be recorded: |: it can't be recorded \(|can't be written down"
        assert all(re.search(refused, row["said"]) for row in blocked)
        resume(engine, "costless", odd)
    resume(engine, "costless", fixed)
    run_to_end(Ledger(engine, "w", LEASE, fixed), unsent(engine))
    assert [row["status"] for row in query(select(questions))] == ["finished"] * 2


def test_an_outage_decides_nothing(engine: Engine, query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise OperationalError("COMMIT", {}, errors.AdminShutdown())

    ledger = Ledger(engine, "w", LEASE, find_system)
    (claim,) = claimed(engine, ledger)
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "_save_sentences", away)
        with pytest.raises(OperationalError):
            ledger.record(completed(claim))
    assert [row["state"] for row in query(select(steps))] == ["running"]
    assert len(ledger.record(completed(claim))) == 1
