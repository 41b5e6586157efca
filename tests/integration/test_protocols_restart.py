"""A loop of tool calls in the store: what providers want handed back comes back to the byte, whatever was restarted."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace
from pydantic import SecretStr
from sqlalchemy import Engine, select

from benchmarks.contenders.cotrail import submission
from cotrail.configuration.settings import Settings
from cotrail.core.actions.generate import REASON, Reason, generation_request
from cotrail.core.actions.kind import Engines
from cotrail.core.actions.registry import KINDS
from cotrail.core.calls import Call, Tool, numbered
from cotrail.core.ports.language_model import LanguageModel
from cotrail.core.prompts import Asked, Prompt, tool, user
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, System, expect
from cotrail.models.commands.submission import submit
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import questions, steps
from cotrail.systems.spec import Needs, SystemSpec, find_spec
from cotrail.tasks.runtime import Runtime
from cotrail.tasks.step import carry_out, perform
from tests.conftest import Eventually
from tests.integration.conftest import Query
from tests.integration.provider_answers import DIALECTS, Dialect
from tests.integration.served import Served, streamed
from tests.integration.stepping import unsent, working_here

pytestmark = pytest.mark.usefixtures("verified")

Make = Callable[..., LanguageModel]

ROUNDS = 3
SIGNATURE = "Eu8C+/" * 400 + "=="
"""As long as those of providers, so that records refer to it."""
SEARCH = Tool(name="search", description="Finds pages.", parameters='{"type":"object"}')
CALL = Call(name="search", arguments='{"query": "Vell"}')


def calling(question: Question, _: Any, __: Struct) -> System:
    """Have the model call a tool in each round."""
    prompt = Prompt(turns=(user(Asked(question.text)),), tools=(SEARCH,))
    for number in range(ROUNDS):
        said = expect((yield Reason(prompt=prompt, max_tokens=50, until="end")), Generated)
        calls = numbered(said.calls, number)
        prompt = prompt.wrote(said.text, calls, said.carried).add(*(tool(call.id, "The sea.") for call in calls))
    return Answer(text=said.text)


SPEC = SystemSpec(
    name="calling",
    version=1,
    title="Calling",
    settings=type("CallingSettings", (Struct,), {}, frozen=True),
    open=calling,
    needs=lambda _: Needs(),
)
find_calling = partial(find_spec, (SPEC,))


@pytest.fixture(params=list(DIALECTS))
def dialect(request: pytest.FixtureRequest) -> Dialect:
    return DIALECTS[request.param]


@pytest.fixture
def here(
    database: str,
    servers: Settings,
    sent: list[Dispatch],
    monkeypatch: pytest.MonkeyPatch,
    open_served: Make,
    served: Served,
    dialect: Dialect,
) -> Iterator[Runtime]:
    """A worker that opens its model anew for each step, as one does that was restarted."""

    def written(action: Reason, engines: Engines) -> Generated:
        url = served.url.removesuffix("/v1") + dialect.version
        model = open_served(url, api=dialect.api, thinks="field", thought_tokens=1024)
        return model.generate(generation_request(action, engines.binding))

    monkeypatch.setitem(KINDS, REASON.name, replace(REASON, carry_out=written))
    own = {"database_url": SecretStr(database)}
    with working_here(servers.model_copy(update=own), sent, monkeypatch, find_calling) as made:
        yield made


def signed(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events with a signature of the length that providers' have."""
    text = json.dumps(events)
    for short in ('"s=="', '"gAAA=="', '"c2ln"'):
        text = text.replace(short, json.dumps(SIGNATURE))
    made: list[dict[str, Any]] = json.loads(text)
    return made


@pytest.mark.usefixtures("here")
def test_signatures_come_back_from_the_store_to_the_byte(
    engine: Engine, sent: list[Dispatch], query: Query, eventually: Eventually, served: Served, dialect: Dialect
) -> None:
    served.replies = [streamed(signed(dialect.streamed(thought="Hm.", text="I look.", calls=(CALL,))))]
    named = {"system": SPEC.name, "system_version": SPEC.version, "settings": {}, "shots": {}}
    submit(engine, replace(submission(), **named), [Question(id="q", text="Where does it end?")], find_calling)
    for message in unsent(engine, "reason"):
        perform(message, carry_out)
    for number in range(1, ROUNDS):
        eventually(lambda number=number: len(sent) == number, "what follows is sent")
        perform(sent[-1], carry_out)
    eventually(lambda: query(select(questions.c.status))[0]["status"] == "finished", "the question ends")
    requests = [json.dumps(asked.body) for asked in served.generations]
    assert [request.count(json.dumps(SIGNATURE)) for request in requests] == list(range(ROUNDS))
    # Requests of steps refer to them.
    recorded = [row["request"] for row in query(select(steps.c.request).order_by(steps.c.sequence))]
    assert SIGNATURE not in json.dumps(recorded)
    with engine.connect() as connection:
        assert [each.divergence for each in replay_run(connection, "costless", find_calling)] == [""]
