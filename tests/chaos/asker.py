"""Someone who asks the service with one token, or none, and finds what is wrong with the answers."""

import random
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, cast

import requests
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.transport import Response
from schemathesis.generation import GenerationMode

from cotrail.services.actor import Scope, scopes_up_to
from cotrail.services.operations.all_operations import OPERATIONS
from tests.chaos.projects import COMMON, Project
from tests.chaos.tally import Tally
from tests.conftest import wait_until

PATIENCE_SECONDS = 60.0
STREAM_SECONDS = 2.0
"""How long an answer may take, and how long a stream is listened to, which may have no end."""

AWAY_SECONDS = 600.0
"""How long the service may be away."""

MOST_TRIES = 20
"""How often a request is sent that may be sent again."""

SUBMIT, ESTIMATE, PRUNE = "POST /v1/runs", "POST /v1/runs/estimate", "POST /v1/prune"

MOST_TOLD = 400
"""The most characters of a body that are kept where something is wrong."""


class Asker:
    """One who asks.

    scope: of the token; None without one. own, other: the asker's project, and one that it must see nothing of.
    under_kills: whether connections may be lost, and the service unavailable.
    """

    def __init__(self, url: str, scope: Scope | None, own: Project, other: Project, tally: Tally, *, under_kills: bool):
        self.name = f"{own.name}, {scope or 'no token'}"
        self._url, self._scope, self._own, self._other = url, scope, own, other
        self._tally, self._under_kills = tally, under_kills
        self._headers = {"Authorization": f"Bearer {own.tokens[scope]}"} if scope else {}
        self._session = requests.Session()
        self._random = random.Random(self.name)

    def ask(self, case: Case[Any]) -> Response | None:
        """Ask, and check the answer; None where there is none."""
        self._aim(case)
        self._tally.cases += 1
        self._tally.operations[case.operation.label] += 1
        answer = self._answer(case)
        if answer is not None:
            self._tally.carried_out[case.operation.label] += answer.status_code < HTTPStatus.BAD_REQUEST
            self._note_runs(case, answer)
            for what, more in self._wrong(case, answer):
                told = f"{self.name}: {_told(case, answer)} {more[:MOST_TOLD]}"
                self._tally.note(f"{case.operation.label}: {what}", told)
        return answer

    def _note_runs(self, case: Case[Any], answer: Response) -> None:
        accepted, body = self._tally.accepted, cast("Any", case.body)
        if case.operation.label == SUBMIT and answer.status_code == HTTPStatus.CREATED:
            accepted |= {each["run"]: each["name"] for each in answer.json()["runs"]}
        elif case.operation.label == PRUNE and answer.status_code == HTTPStatus.OK:
            for run in body["runs"]:
                accepted.pop(run, None)

    def _answer(self, case: Case[Any]) -> Response | None:
        """The answer; where the request has a key, it is sent again until there is one that says what became of it."""
        operation = OPERATIONS.get(case.operation.definition.raw["operationId"])
        if operation is None or operation.replayed is None:
            return self._sent(case, self._headers)
        headers = {**self._headers, "Idempotency-Key": f"{self.name}-{self._tally.cases}"}
        answer = self._sent(case, headers)
        for _ in range(MOST_TRIES):
            if not self._under_kills or not _is_away(answer):
                break
            answer = self._sent(case, headers)
        return answer

    def _sent(self, case: Case[Any], headers: dict[str, str]) -> Response | None:
        """The answer to a request that is sent once; where the service is away, it is waited for."""
        answer = self._received(case, headers)
        if self._under_kills and _is_away(answer):
            wait_until(self._is_ready, "the service is ready again", AWAY_SECONDS)
        return answer

    def _is_ready(self) -> bool:
        try:
            return requests.get(f"{self._url}/ready", timeout=PATIENCE_SECONDS).ok
        except requests.RequestException:
            return False

    def _received(self, case: Case[Any], headers: dict[str, str]) -> Response | None:
        seconds = STREAM_SECONDS if "events" in case.path else PATIENCE_SECONDS
        try:
            answer = case.call(self._url, self._session, headers, timeout=seconds)
        except requests.RequestException as error:
            self._tally.lost += 1
            if not self._under_kills:
                self._tally.note(f"{case.operation.label}: there was no answer", f"{self.name}: {error}")
            return None
        self._tally.statuses[self.name][str(answer.status_code)] += 1
        return answer

    def _aim(self, case: Case[Any]) -> None:
        """Have many cases name what there is, in the own project and in the other one."""
        if not self._headers:
            case.headers.pop("Authorization", None)
        if case.path_parameters.get("token") in self._own.in_use:
            case.path_parameters["token"] = self._own.there["token"][0]
        if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE:
            return
        if case.operation.label in (SUBMIT, ESTIMATE) and isinstance(case.body, dict):
            case.body = self._submission(case.body)
        for part in (case.path_parameters, case.query, case.body):
            if isinstance(part, dict):
                part.update({name: self._aimed(name, value) for name, value in part.items()})
        if case.operation.label == PRUNE and isinstance(case.body, dict) and self._tally.accepted:
            case.body["runs"] = [self._random.choice(list(self._tally.accepted))]  # what others aim at stays

    def _submission(self, body: dict[str, Any]) -> dict[str, Any]:
        """A request for a run under a name of its own: as it is, or one that is accepted, or that but for one field."""
        name = f"{self.name}-{self._tally.cases}"
        accepted = self._own.request(name)
        changed = {key: body[key] for key in self._random.sample(sorted(body), min(1, len(body)))}
        return self._random.choice([{**body, "name": name}, accepted, accepted | changed | {"name": name}])

    def _aimed(self, name: str, value: Any) -> Any:
        there = (self._other if self._random.random() < 0.2 else self._own).there
        if name not in there or self._random.random() < 0.3:
            return value
        some = self._random.sample(there[name], len(there[name]))
        return some if isinstance(value, list) else some[0]

    def _wrong(self, case: Case[Any], answer: Response) -> Iterator[tuple[str, str]]:
        """What is wrong with an answer, and more of it."""
        excused: list[Any] = [not_a_server_error] if self._under_kills and _is_away(answer) else []
        try:
            case.validate_response(answer, excluded_checks=excused)
        except FailureGroup as group:
            for each in group.exceptions:
                yield f"{answer.status_code}: {each.title}", each.message
        for what in self._told_too_much(case, answer):
            yield what, ""

    def _told_too_much(self, case: Case[Any], answer: Response) -> Iterator[str]:
        if answer.status_code < HTTPStatus.BAD_REQUEST:
            needed = case.operation.definition.raw.get("x-scope", Scope.READ)
            if self._scope is None or needed not in scopes_up_to([self._scope]):
                yield "one without the scope was answered"
            named = {name: value for name, value in case.path_parameters.items() if name not in COMMON}
            if any(value in self._other.there.get(name, ()) for name, value in named.items()):
                yield "what is another project's was answered"
        if any(secret.encode() in answer.content for secret in self._other.secrets):
            yield "another project's texts were told"


def _is_away(answer: Response | None) -> bool:
    return answer is None or answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE


def _told(case: Case[Any], answer: Response) -> str:
    """A case and its answer, to read."""
    asked, told = answer.request, answer.content[:MOST_TOLD].decode(errors="replace")
    return f"{asked.method} {asked.url} {str(asked.body)[:MOST_TOLD]} -> {answer.status_code} {told}"
