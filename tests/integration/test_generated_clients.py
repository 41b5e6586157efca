"""Clients that two public generators make of the description, each against a service."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from cotrail.models.schema.tables import runs
from cotrail.services.actor import Scope
from tests.generated_clients.generating import DESCRIPTION, Made, python_client, run, typescript_client
from tests.integration.asked_service import write_home
from tests.integration.conftest import Cotrail, Query
from tests.integration.serving import Server, serving


@pytest.fixture
def request_(tmp_path: Path) -> dict[str, Any]:
    return write_home(tmp_path / "home")


@pytest.fixture
def server(tmp_path: Path, request_: dict[str, Any], cotrail: Cotrail) -> Iterator[Server]:
    with serving({"COTRAIL_HOME": str(tmp_path / "home")}, tmp_path / "log") as server:
        yield server


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    """The client of a generator."""
    make: Callable[[Path], Made] = request.param
    (tmp_path / "client").mkdir()
    return make(tmp_path / "client")


@pytest.mark.parametrize("made", [python_client, typescript_client], indirect=True)
def test_a_generated_client_has_every_operation_and_is_answered(
    made: Made, server: Server, request_: dict[str, Any], tmp_path: Path, cotrail: Cotrail, query: Query
) -> None:
    assert {_plain(each) for each in made.operations} == {_plain(each) for each in _described()}
    token = json.loads(cotrail("token", "create", "generated", "--scope", "operate", "--json").stdout)["secret"]
    told = json.loads(
        run(*made.command, server.url, token, tmp_path / "home" / "questions.jsonl", request_["questions"])
    )
    [recorded] = query(select(runs.c.id))
    assert told == {
        "name": "generated",
        "scopes": [Scope.READ, Scope.SUBMIT, Scope.OPERATE],
        "systems": [each["name"] for each in json.loads(cotrail("systems", "--json").stdout)],
        "runs": [recorded["id"]] * 2,
        "state": "cancelled",
        "last": "end",
        "missing": [404, "unknown-name"],
        "refused": [422, "input"],
    }


def _described() -> list[str]:
    paths = msgspec.json.decode(DESCRIPTION.read_bytes())["paths"].values()
    return [operation["operationId"] for methods in paths for operation in methods.values()]


def _plain(name: str) -> str:
    """A name of an operation without what languages write differently."""
    return re.sub("[^a-z0-9]", "", name.lower())
