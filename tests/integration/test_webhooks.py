"""Webhooks: endpoints are told of each run that ends or is blocked, signed, at least once, under one id."""

import base64
import threading
from pathlib import Path

import msgspec
import pytest
from cloudevents.core.formats.json import JSONFormat
from msgspec.structs import replace
from sqlalchemy import Engine, func, select, update
from standardwebhooks import Webhook

from cotrail.configuration.files import WebhookEndpoint, read_webhooks
from cotrail.errors import BlockedError, InputError
from cotrail.models.commands import control
from cotrail.models.execution.admission import runs_to_close
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.webhooks import claim_due
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.service_tables import webhook_deliveries
from cotrail.systems.registry import find_system
from cotrail.workers.housekeeping import Closing
from cotrail.workers.webhooks import Webhooks
from tests.conftest import Eventually
from tests.integration.served import Asked, Served, answer, held
from tests.integration.stepping import LEASE, begin, run_to_end, unsent

SECRET = "whsec_" + base64.b64encode(b"a secret of the tests").decode()


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch, served: Served) -> WebhookEndpoint:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    served.replies = [answer(204)]
    return WebhookEndpoint(url=f"{served.url}/hook", secret_variable="HOOK_SECRET")


@pytest.fixture
def webhooks(engine: Engine, endpoint: WebhookEndpoint) -> Webhooks:
    return Webhooks(engine, {"team": endpoint, "others": replace(endpoint, projects=("another",))})


def close(engine: Engine, webhooks: Webhooks, eventually: Eventually) -> None:
    """Closes the runs that have ended, and has endpoints be told."""
    Closing(engine, webhooks.closed).start_due()

    def closed() -> bool:
        with engine.begin() as connection:
            return not runs_to_close(connection)

    eventually(closed, "the runs are closed")


def verified(asked: Asked) -> dict[str, object]:
    """The event of a request, whose signature and form are right."""
    body = msgspec.json.encode(asked.body)
    Webhook(SECRET).verify(body, asked.headers)
    event = JSONFormat().read(None, body)
    assert event.get_id() == asked.headers["webhook-id"]
    return {"type": event.get_type(), "subject": event.get_subject(), "data": event.get_data()}


def in_outbox(engine: Engine) -> int:
    with engine.connect() as connection:
        waiting = select(func.count()).where(webhook_deliveries.c.next_at.is_not(None))
        return int(connection.execute(waiting).scalar_one())


def make_due(engine: Engine) -> None:
    with engine.begin() as connection:
        due = update(webhook_deliveries).where(webhook_deliveries.c.next_at.is_not(None))
        connection.execute(due.values(next_at=func.now()))


def test_a_run_that_ended_or_was_cancelled_is_told_of_once(
    engine: Engine, webhooks: Webhooks, served: Served, eventually: Eventually
) -> None:
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, 2, id="whole"))
    begin(engine, 1, id="ended-early")
    control.cancel(engine, "ended-early")
    begin(engine, 1, id="open")
    close(engine, webhooks, eventually)
    webhooks.start_due()
    eventually(lambda: not in_outbox(engine), "all events are delivered")
    close(engine, webhooks, eventually)
    webhooks.start_due()
    events = [verified(asked) for asked in served.asked]
    told = {event["subject"]: event for event in events}
    assert len(events) == 2
    assert told["whole"]["type"] == "dev.cotrail.run.finished.v1"
    assert told["whole"]["data"] == {
        "state": "finished",
        "run": "whole",
        "project": "default",
        "name": None,
        "questions": {"finished": 2},
        "digest": told["whole"]["data"]["digest"],  # type: ignore[index]
    }
    assert told["ended-early"]["type"] == "dev.cotrail.run.cancelled.v1"


def test_an_endpoint_that_was_away_is_told_later_under_the_same_id(
    engine: Engine, webhooks: Webhooks, served: Served, eventually: Eventually
) -> None:
    served.replies = [answer(500), answer(302, headers={"Location": "http://127.0.0.1:1/"}), answer(200)]
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, id="told"))
    close(engine, webhooks, eventually)
    for attempt in (1, 2, 3):
        webhooks.start_due()
        eventually(lambda attempt=attempt: len(served.asked) == attempt, "it is tried")
        webhooks.join()
        webhooks.start_due()  # nothing is due before the pause is over
        make_due(engine)
    assert len({asked.headers["webhook-id"] for asked in served.asked}) == 1
    assert in_outbox(engine) == 0


def test_an_endpoint_that_does_not_answer_delays_no_other(
    engine: Engine, endpoint: WebhookEndpoint, served: Served, eventually: Eventually
) -> None:
    go, dead = threading.Event(), Served()
    dead.replies = [held(go, answer(204))]
    webhooks = Webhooks(engine, {"a dead one": replace(endpoint, url=f"{dead.url}/hook"), "team": endpoint})
    for number in range(3):
        run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, id=f"run-{number}"))
    close(engine, webhooks, eventually)
    webhooks.start_due()
    eventually(lambda: len(dead.asked) == 1 and len(served.asked) == 3, "the others are told meanwhile")
    make_due(engine)
    webhooks.start_due()
    go.set()
    webhooks.join()
    assert len({asked.headers["webhook-id"] for asked in dead.asked}) == len(dead.asked) == 3
    dead.close()


def test_one_that_is_gone_is_given_up(
    engine: Engine, webhooks: Webhooks, served: Served, eventually: Eventually
) -> None:
    served.replies = [answer(410)]
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, id="told"))
    close(engine, webhooks, eventually)
    webhooks.start_due()
    eventually(lambda: not in_outbox(engine), "it is given up")
    with engine.connect() as connection:
        assert connection.execute(select(webhook_deliveries.c.problem)).scalars().all() == [
            "it answered with status 410"
        ]


def test_a_delivery_whose_process_died_is_made_again(
    engine: Engine, endpoint: WebhookEndpoint, webhooks: Webhooks, served: Served, eventually: Eventually
) -> None:
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, id="told"))
    close(engine, webhooks, eventually)
    with engine.begin() as connection:
        assert len(claim_due(connection)) == 1  # and then the process died
    webhooks.start_due()
    assert served.asked == []
    make_due(engine)
    Webhooks(engine, {"team": endpoint}).start_due()
    eventually(lambda: not in_outbox(engine), "another process delivers it")
    assert len(served.asked) == 1


def test_a_blocked_run_is_told_of_again_only_where_it_was_opened_in_between(
    engine: Engine, webhooks: Webhooks, served: Served, eventually: Eventually
) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    for times in (1, 2):
        messages = begin(engine, 1, id="stuck") if times == 1 else _opened_again(engine)
        [claim] = ledger.claim(messages)
        assert claim is not None
        ledger.block(claim, BlockedError("the key is missing"))
        for _ in range(2):
            webhooks.start_due()
            webhooks.join()
        assert len(served.asked) == times
    assert {verified(asked)["type"] for asked in served.asked} == {"dev.cotrail.run.blocked.v1"}


def _opened_again(engine: Engine) -> list[Dispatch]:
    control.resume(engine, "stuck", find_system)
    return unsent(engine)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("[webhooks.a]\nurl = 'ftp://h/'\nsecret_variable = 'S'", "url"),
        ("[webhooks.a]\nurl = 'https://h/'\nsecret_variable = 'the secret'", "secret_variable"),
        ("[webhooks.a]\nurl = 'https://h/'\nsecret_variable = 'S'\nevents = ['begun']", "events"),
        ("[webhooks.a]\nurl = 'https://u:p@h/'\nsecret_variable = 'S'", "password"),
    ],
)
def test_a_file_that_can_not_be_used_is_refused(tmp_path: Path, written: str, said: str) -> None:
    (tmp_path / "webhooks.toml").write_text(written)
    with pytest.raises(InputError, match=said):
        read_webhooks(tmp_path / "webhooks.toml")


def test_what_signs_is_never_quoted(
    engine: Engine, webhooks: Webhooks, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", "whsec_é-not-base64")
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, id="told"))
    close(engine, webhooks, eventually)
    webhooks.start_due()
    webhooks.join()
    with engine.connect() as connection:
        [problem] = connection.execute(select(webhook_deliveries.c.problem)).scalars()
    assert "HOOK_SECRET" in problem
    assert "not-base64" not in problem
