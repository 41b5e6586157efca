"""Every route that only reads, and every page of the viewer, over every run of the odd store."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import quote

import pytest
from litestar.testing import TestClient
from msgspec import Struct
from sqlalchemy import Engine, select

from cotrail.api.pages import VIEWER
from cotrail.models.schema.tables import questions, runs, steps
from cotrail.services.results.export_formats import FORMATS
from tests.integration.odd import store
from tests.integration.odd.claims import false_claims, impossible
from tests.integration.test_access_table import NAMING, parameters, routes
from tests.integration.viewer.read_pages import BROWSER, read_page

STREAMS = ("/events", "/v1/openapi", "/auth/", "/static/", "/health", "/ready")
"""Routes that are tried elsewhere: streams without an end, and those that show no run."""

QUESTIONS = 3
"""Questions of a run that are looked at, each with its first step and its last."""

FURTHER: dict[str, Sequence[Mapping[str, Any]]] = {
    "GET /v1/runs/{run}/export": [{"form": form} for form in ("csv", *FORMATS)],
    "GET /runs/{run}": [{}, {"status": "failed", "sort": "steps"}],
}
"""What is asked for beside a run, where it makes a difference."""


OTHERS = ("found-at-once", "nothing-published", "judge")
"""What each run is compared with."""

COMPARING: dict[str, Callable[[str, str], Mapping[str, Any]]] = {
    "GET /compare": lambda run, other: {"run": [run, other]},
    "GET /compare/questions": lambda run, other: {"run": [other, run]},
    "GET /compare/question": lambda run, other: {"run": [run, other], "question": "q"},
    "GET /v1/comparisons": lambda run, other: {"runs": [run, other]},
    "GET /v1/comparisons/questions": lambda run, other: {"first": run, "second": other},
    "GET /v1/comparisons/questions/{question}": lambda run, other: {"first": run, "second": other},
}
"""What is asked of two runs."""


class Asked(Struct, frozen=True):
    """A request, and what came of it."""

    route: str
    address: str
    status: int
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.route}: {self.address[:160]} → {self.status} {'; '.join(self.wrong[:3])}"


@cache
def _reading() -> Sequence[tuple[str, str]]:
    """The routes that only read, by name and path."""
    found = [(name, path) for name, (method, path, _) in routes().items() if method == "GET"]
    return [(name, path) for name, path in found if not any(part in path for part in STREAMS)]


@pytest.fixture
def places(odd: Engine) -> Mapping[str, Sequence[Mapping[str, str]]]:
    """For each run the values of the parameters of paths: the run's, its questions' and their steps'."""
    with odd.connect() as connection:
        rows = connection.execute(
            select(runs.c.id, questions.c.key, steps.c.id.label("step"))
            .outerjoin_from(runs, questions, questions.c.run_id == runs.c.id)
            .outerjoin(steps, steps.c.question_id == questions.c.id)
            .order_by(runs.c.id, questions.c.position, steps.c.sequence)
        ).all()
    found: dict[str, list[dict[str, str]]] = {}
    for run, of_run in itertools.groupby(rows, key=lambda row: row.id):
        found[run] = [{"run": run}]
        for key, of_question in itertools.islice(itertools.groupby(of_run, key=lambda row: row.key), QUESTIONS):
            if key is not None:
                found[run] += _steps(run, key, [row.step for row in of_question if row.step is not None])
    return found


def _steps(run: str, key: str, ids: Sequence[int]) -> Iterator[dict[str, str]]:
    yield {"run": run, "question": key}
    for number in sorted({0, len(ids) - 1}) if ids else ():
        yield {"run": run, "question": key, "step": str(number), "id": str(ids[number])}


def _addresses(name: str, path: str, values: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What is asked of a route about one run."""
    wanted = set(parameters(path))
    for each in values:
        named = {**each, **({"step": each["id"]} if path.startswith("/v1/steps") and "id" in each else {})}
        if not wanted <= set(named) or (set(named) - {"id"}) - wanted - {"run"}:
            continue
        place = path.format(**{key: quote(value, safe="") for key, value in named.items()})
        run = each["run"]
        about = {key: make(run) for key, make in NAMING.get(name, {}).items()}
        furthers = [COMPARING[name](run, other) for other in OTHERS if other != run] if name in COMPARING else None
        yield from ((place, {**about, **further}) for further in furthers or FURTHER.get(name, [{}]))


def _ask(client: "TestClient[Any]", name: str, place: str, query: Mapping[str, Any]) -> Asked:
    page = routes()[name][2].opt.get("operation", "").startswith(f"{VIEWER}.")
    answer = client.get(place, params=dict(query), headers=BROWSER if page else {})
    wrong: list[str] = []
    if answer.status_code >= 500:
        wrong.append(answer.text[:300])
    elif page:
        wrong += false_claims(read_page(answer.text).text)
    elif answer.headers.get("Content-Type", "").partition(";")[0] == "application/json":
        wrong += impossible(json.loads(answer.content))
    return Asked(name, f"{place}?{query}" if query else place, answer.status_code, tuple(wrong))


@pytest.mark.timeout(1800)
def test_no_route_fails_or_claims_too_much_of_any_run(
    client: "TestClient[Any]", places: Mapping[str, Sequence[Mapping[str, str]]]
) -> None:
    assert set(store.STATES) <= set(places)
    asked = [
        _ask(client, name, place, query)
        for name, path in _reading()
        if "{run}" in path or "/steps/" in path or "after" not in NAMING.get(name, {"after": ""})
        for values in places.values()
        for place, query in _addresses(name, path, values)
    ]
    answered = {each.route for each in asked if each.status == 200}
    wrong = [str(each) for each in asked if each.wrong]
    assert not wrong, "\n".join(wrong)
    assert len(answered) > 40, "the walk leads past most routes"
