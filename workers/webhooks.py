"""Webhooks: other programs are notified, by signed requests, that a run has ended or is blocked.

Events are CloudEvents 1.0 in JSON, signed as Standard Webhooks are. They go to the endpoints of `webhooks.toml` and
nowhere else: redirects aren't followed.
"""

import logging
import os
import threading
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from cotrail.common.optional_packages import installed_with
from cotrail.common.server_addresses import http_options
from cotrail.configuration.files import Endpoints, RunEvent, WebhookEndpoint
from cotrail.models.execution import webhooks
from cotrail.models.schema.states import DesiredState

logger = logging.getLogger(__name__)

SECONDS = 10.0
"""How long an endpoint may take to answer."""

EXTRA = "webhooks"
# An endpoint that answers so is there no more: trying again is of no use.
GONE = 410


class CloudEvent(Struct, frozen=True, kw_only=True):
    """An event in CloudEvents' JSON format (version 1.0)."""

    id: str
    source: str
    type: str
    subject: str
    time: datetime
    data: Any
    specversion: str = "1.0"
    datacontenttype: str = "application/json"


class Webhooks:
    """Tells endpoints of runs; threads alongside the sweeps wait for their answers, one for each endpoint."""

    def __init__(self, engine: Engine, endpoints: Endpoints) -> None:
        self._engine = engine
        self._endpoints = endpoints
        self._threads: dict[str, threading.Thread] = {}
        if endpoints:
            with installed_with(EXTRA):
                import httpx2
                from standardwebhooks import Webhook
            self._sign: Callable[[str], Any] = Webhook
            self._http = httpx2.Client(**http_options(), timeout=SECONDS, follow_redirects=False)

    def closed(self, connection: Connection, run_id: str, desired: str) -> None:
        """Put into the outbox, in the transaction that seals a run, that it has ended."""
        self._post(connection, run_id, "cancelled" if desired == DesiredState.CANCELLED else "finished")

    def start_due(self) -> None:
        """Begin to deliver what is due to endpoints that aren't being notified of something already."""
        if not self._endpoints:
            return
        busy = [name for name, thread in self._threads.items() if thread.is_alive()]
        with self._engine.begin() as connection:
            for run_id in webhooks.newly_blocked(connection, event_type("blocked")):
                self._post(connection, run_id, "blocked")
            due = webhooks.claim_due(connection, busy)
        for name in {each.endpoint for each in due}:
            deliveries = [each for each in due if each.endpoint == name]
            self._threads[name] = threading.Thread(
                target=self._deliver, args=[deliveries], name="webhooks", daemon=True
            )
            self._threads[name].start()

    def join(self) -> None:
        """Wait until what was begun is done."""
        for thread in self._threads.values():
            thread.join()

    def _post(self, connection: Connection, run_id: str, event: RunEvent) -> None:
        if not self._endpoints:
            return
        facts = webhooks.read_facts(connection, run_id)
        wanting = [name for name, endpoint in self._endpoints.items() if endpoint.wants(event, facts.project)]
        data = {"state": event, **msgspec.to_builtins(facts)}
        webhooks.post(connection, run_id, [_addressed(name, event, data) for name in wanting])

    def _deliver(self, due: Sequence[webhooks.Delivery]) -> None:
        for delivery in due:
            problem, give_up = self._problem(delivery)
            try:
                with self._engine.begin() as connection:
                    if problem is None:
                        webhooks.delivered(connection, delivery)
                    else:
                        webhooks.undelivered(connection, delivery, problem, give_up=give_up)
            except SQLAlchemyError as error:
                logger.warning("what became of webhook %s isn't recorded, so it is sent again: %s", delivery.id, error)
            if problem is not None:
                logger.warning("the webhook %s wasn't notified of %s: %s", delivery.endpoint, delivery.id, problem)

    def _problem(self, delivery: webhooks.Delivery) -> tuple[str | None, bool]:
        """Send an event; returns why the endpoint didn't take it, and whether it never will."""
        endpoint = self._endpoints.get(delivery.endpoint)
        if endpoint is None:
            return "webhooks.toml has no such endpoint any more", True
        import httpx2

        body = msgspec.json.encode(delivery.event).decode()
        try:
            headers = self._headers(endpoint, delivery.id, body)
            with self._http.stream("POST", endpoint.url, content=body, headers=headers) as response:
                status = response.status_code
        except (httpx2.HTTPError, ValueError) as error:
            return str(error) or type(error).__name__, False
        return (None, False) if response.is_success else (f"it answered with status {status}", status == GONE)

    def _headers(self, endpoint: WebhookEndpoint, id_: str, body: str) -> dict[str, str]:
        """The headers of Standard Webhooks; ValueError where the secret can't sign."""
        secret = os.environ.get(endpoint.secret_variable, "").strip()
        if not secret:
            raise ValueError(f"the variable {endpoint.secret_variable} isn't set, which holds the secret")
        at = datetime.now(UTC)
        try:
            signature = self._sign(secret).sign(id_, at, body)
        except ValueError:
            # The library's own message may quote what it was given.
            raise ValueError(f"the secret in {endpoint.secret_variable} isn't base64 behind `whsec_`") from None
        return {
            "Content-Type": "application/cloudevents+json",
            "webhook-id": id_,
            "webhook-timestamp": str(int(at.timestamp())),
            "webhook-signature": signature,
        }


def event_type(event: RunEvent) -> str:
    """The type of such events."""
    return f"dev.cotrail.run.{event}.v1"


def _addressed(endpoint: str, event: RunEvent, data: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    id_ = f"msg_{uuid.uuid4().hex}"
    made = CloudEvent(
        id=id_,
        source=f"/projects/{data['project']}",
        type=event_type(event),
        subject=data["run"],
        time=datetime.now(UTC),
        data=data,
    )
    return id_, endpoint, msgspec.to_builtins(made, str_keys=True)
