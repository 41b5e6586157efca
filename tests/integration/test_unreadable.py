"""A step that can't be read blocks its question, with the reason, and spoils no other that is claimed with it."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from sqlalchemy import Engine, delete, select, text, update

from cotrail.core.results import Failure
from cotrail.models.commands.control import resume
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.recovery import expire_leases
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import DemonstrationSet, attempts, questions, steps
from cotrail.systems.registry import find_system
from tests.integration.conftest import Query
from tests.integration.stepping import LEASE, begin, completed, run_to_end, unsent

RUN = "costless"
WHOLE: dict[str, Any] = {"query": "q", "count": 1, "titles": [], "scope": "only", "field": "all"}
SEARCHES = {
    "a number": "5",
    "null": "null",
    "an array": "[]",
    "an empty object": "{}",
    "one of a newer version": json.dumps(WHOLE | {"rerank": True}),
    "a field of another type": json.dumps(WHOLE | {"count": "many"}),
    "an unknown word": json.dumps(WHOLE | {"scope": "everywhere"}),
    "a number of thousands of digits": json.dumps(WHOLE).replace("1", "1" + "0" * 5000),
    "nested too deeply": json.dumps(WHOLE | {"count": "?"}).replace('"?"', "[" * 2000 + "]" * 2000),
    "paragraphs of another type": json.dumps(WHOLE | {"paragraphs": [1, {}, "a"]}),
    "a number of paragraphs": json.dumps(WHOLE | {"paragraphs": 7}),
}
"""What may stand where a search should."""


def change(engine: Engine, message: Dispatch, request: str) -> None:
    with engine.begin() as connection:
        parameters = {"id": message.step_id, "request": request}
        connection.execute(text("UPDATE steps SET request = CAST(:request AS jsonb) WHERE id = :id"), parameters)


def request_of(engine: Engine, message: Dispatch) -> str:
    with engine.begin() as connection:
        found = connection.execute(select(steps.c.request).where(steps.c.id == message.step_id)).scalar_one()
    return msgspec.json.encode(found).decode()


def blocks_alone(engine: Engine, query: Query, messages: Sequence[Dispatch], bad: Dispatch) -> str:
    """Claims the messages together; returns why the bad one's question is blocked."""
    ledger = Ledger(engine, "w", LEASE, find_system)
    claims = ledger.claim(messages)
    assert [claim is None for claim in claims] == [message is bad for message in messages]
    ledger.commit([completed(claim) for claim in claims if claim is not None])
    [question] = query(select(questions).where(questions.c.status == "blocked"))
    [attempt] = query(select(attempts).where(attempts.c.step_id == bad.step_id, attempts.c.ended_at.is_not(None)))
    assert attempt["outcome"] == "blocked"
    assert attempt["error"] == question["reason"]
    assert bad.step_id not in {message.step_id for message in unsent(engine, bad.kind)}
    assert question["reason"]["type"] == "UnreadableError"
    assert len(question["reason"]["message"]) < 500
    return str(question["reason"]["message"])


@pytest.mark.parametrize("request_", SEARCHES.values(), ids=SEARCHES)
def test_a_search_that_cannot_be_read_blocks_its_question_alone(engine: Engine, query: Query, request_: str) -> None:
    messages = begin(engine, 3)
    bad = messages[1]
    whole = request_of(engine, bad)
    change(engine, bad, request_)
    assert "damaged, or of a newer version" in blocks_alone(engine, query, messages, bad)
    change(engine, bad, whole)
    resume(engine, RUN, find_system)
    ledger = Ledger(engine, "w", LEASE, find_system)
    run_to_end(ledger, [*unsent(engine), *unsent(engine, "reason")])
    run_to_end(ledger, [*unsent(engine), *unsent(engine, "reason")])
    assert [row["status"] for row in query(select(questions.c.status))] == ["finished"] * 3


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"paragraphs": ["gone"]}, "the paragraph gone isn't in the store"),
        ({"demonstrations": "gone"}, "demonstrations gone aren't in the store"),
        ({"sentences": [1]}, "damaged, or of a newer version"),
        ({"think": True}, "damaged, or of a newer version"),
        ({"until": "the end"}, "damaged, or of a newer version"),
    ],
    ids=str,
)
def test_a_prompt_that_cannot_be_read_blocks_its_question_alone(
    engine: Engine, query: Query, changed: dict[str, Any], said: str
) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    following = ledger.commit([completed(claim) for claim in ledger.claim(begin(engine, 3))])
    messages = [message for sent in following for message in sent]
    bad = messages[1]
    change(engine, bad, json.dumps(json.loads(request_of(engine, bad)) | changed))
    assert said in blocks_alone(engine, query, messages, bad)


def test_a_run_whose_demonstrations_are_gone_is_blocked(engine: Engine, query: Query) -> None:
    messages = begin(engine, 2)
    query(delete(DemonstrationSet).returning(DemonstrationSet.digest))
    assert Ledger(engine, "w", LEASE, find_system).claim(messages) == [None, None]
    reasons = [row["reason"]["message"] for row in query(select(questions.c.reason))]
    assert len(reasons) == 2
    assert all("aren't in the store" in reason for reason in reasons)


def test_steps_are_set_aside_beside_one_that_cannot_be_read(engine: Engine, query: Query) -> None:
    messages = begin(engine, 2)
    assert None not in Ledger(engine, "w", 0, find_system).claim(messages)
    with engine.begin() as connection:
        connection.execute(update(steps).values(lease_until=text("now() - interval '1 s'")))
        assert len(expire_leases(connection)) == 2
    change(engine, messages[0], "{}")
    failure = Failure(type="PoisonedStep", message="no")
    Ledger(engine, "m", LEASE, find_system).give_up([message.step_id for message in messages], failure)
    states = [row["state"] for row in query(select(steps.c.state).order_by(steps.c.id))]
    assert states[:2] == ["blocked", "failed"]
