"""Whatever a step results in, its end is recorded and nobody else's work is held up."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from psycopg import errors
from sqlalchemy import Engine, select
from sqlalchemy.exc import OperationalError

from cotrail.core.paragraphs import Hit, Paragraph
from cotrail.core.results import MOST_CHARACTERS, Generated, Retrieved
from cotrail.models.execution.claims import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.dispatch import Dispatch
from cotrail.models.schema.tables import attempts, paragraph_sets, questions, steps
from cotrail.systems.registry import find_system
from tests.integration.conftest import Query
from tests.integration.stepping import LEASE, begin, completed

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
