"""Conversations in the store: turns, paragraphs and calls, written down by reference and rebuilt to the byte."""

import hashlib
import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace
from pydantic import SecretStr
from sqlalchemy import Engine, select, text

from benchmarks.contenders.cotrail import submission
from cotrail.audit.provenance import provenance
from cotrail.configuration.settings import Settings
from cotrail.core.actions.generate import REASON, Reason
from cotrail.core.actions.kind import Engines
from cotrail.core.actions.registry import KINDS
from cotrail.core.calls import Call, Tool
from cotrail.core.prompts import Asked, Prompt, Shown, Written, assistant, system, tool, user
from cotrail.core.questions import Paragraph, Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, System, expect
from cotrail.engines.language_models.packing import pack
from cotrail.engines.language_models.result import generated
from cotrail.engines.language_models.token_counts import TokenCounts
from cotrail.models.commands.submission import submit
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.queries.traces import find_question, read_question
from cotrail.models.records.steps import Dispatch
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.tables import paragraphs, questions, steps
from cotrail.systems.spec import Needs, SystemSpec, find_spec
from cotrail.tasks.runtime import Runtime
from cotrail.tasks.step import carry_out, perform
from tests.conftest import Eventually
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import unsent, working_here

pytestmark = pytest.mark.usefixtures("verified")

ROUNDS = 4
LONG = "It was built of oak, which the town had plenty of, and it stood for two hundred years. " * 5
SEARCH = Tool(name="search", description="Search the corpus.", parameters='{"type": "object"}')


def chatting(question: Question, _: Any, __: Struct) -> System:
    """Talk for four rounds; each answer is long, is looked up, and what is found is shown in the next turn."""
    prompt = Prompt(turns=(system("You know bridges."), user("Tell me.\n", Asked(question.text))), tools=(SEARCH,))
    for number in range(ROUNDS):
        said = expect((yield Reason(prompt=prompt, max_tokens=50, until="stop", stop=("\n\n",))), Generated)
        call = Call(name="search", arguments='{"query": "bridge"}', id=f"{number}.0")
        found = Paragraph(id=f"p{number}", title=f"Bridge {number}", text=LONG)
        prompt = prompt.add(
            assistant(Written(said.text), calls=(call,)),
            tool(call.id, Shown(paragraph=found, form="Found: {title}\n{text}")),
        )
    return Answer(text=said.text[:10])


SPEC = SystemSpec(
    name="chatting",
    version=1,
    title="Chatting",
    settings=type("ChattingSettings", (Struct,), {}, frozen=True),
    open=chatting,
    needs=lambda _: Needs(),
)
find_chatting = partial(find_spec, (SPEC,))


def write(action: Reason, _: Engines) -> Generated:
    text = f"Turn {len(action.prompt.turns)}. {LONG}"
    # Room for all but the last two of the paragraphs found.
    packed = pack(action.prompt, len, 3200, 0)
    return generated(packed, text, text + "\n\n", TokenCounts(1, 0, 1), "stop", "\n\n")


@pytest.fixture
def here(database: str, servers: Settings, sent: list[Dispatch], monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """A worker whose model writes long texts."""
    monkeypatch.setitem(KINDS, REASON.name, replace(REASON, carry_out=write))
    own = {"database_url": SecretStr(database)}
    with working_here(servers.model_copy(update=own), sent, monkeypatch, find_chatting) as made:
        yield made


@pytest.fixture
def answered(engine: Engine, here: Runtime, sent: list[Dispatch], query: Query, eventually: Eventually) -> None:
    """The question, all of whose steps the worker has carried out."""
    named = {"system": SPEC.name, "system_version": SPEC.version, "settings": {}, "shots": {}}
    submit(engine, replace(submission(), **named), [Question(id="q", text="Who built it?")], find_chatting)
    for message in unsent(engine, "reason"):
        perform(message, carry_out)
    for number in range(1, ROUNDS):
        eventually(lambda number=number: len(sent) == number, "what follows is sent")
        perform(sent[-1], carry_out)
    eventually(lambda: query(select(questions.c.status))[0]["status"] == "finished", "the question ends")


def requests(query: Query) -> list[dict[str, Any]]:
    return [row["request"] for row in query(select(steps.c.request).order_by(steps.c.sequence))]


@pytest.mark.usefixtures("answered")
def test_a_further_turn_adds_references_and_none_of_the_text_again(query: Query) -> None:
    asked = requests(query)
    assert LONG not in json.dumps(asked)
    sizes = [len(json.dumps(each)) for each in asked]
    assert all(later - earlier < 500 for earlier, later in pairwise(sizes))
    stored = query(select(paragraphs.c.title, paragraphs.c.text))
    assert len(stored) == 2 * (ROUNDS - 1)  # each round's paragraph and message, once
    assert [len(each["paragraphs"]) for each in asked if "paragraphs" in each] == [1, 2, 3]


@pytest.mark.usefixtures("answered")
def test_the_query_of_the_page_on_the_store_lists_the_paragraphs_in_each_prompt(query: Query) -> None:
    page = (Path(__file__).parents[2] / "docs" / "store.md").read_text("utf-8")
    listed = query(text(re.findall(r"```sql\n(.*?)```", page, re.DOTALL)[-1]))
    assert [(row["key"], row["step"], row["place"], row["title"]) for row in listed] == [
        ("q", step, place, f"Bridge {place - 1}") for step in range(1, ROUNDS) for place in range(1, step + 1)
    ]


@pytest.mark.usefixtures("answered")
def test_each_prompt_is_rebuilt_as_the_model_saw_it(query: Query, cotrail: Cotrail) -> None:
    for number, row in enumerate(query(select(steps.c.result).order_by(steps.c.sequence))):
        shown = cotrail("audit", "prompt", "costless", "q", str(number)).output.removesuffix("\n")
        assert hashlib.sha256(shown.encode()).hexdigest() == row["result"]["prompt_digest"]
        conversation = msgspec.json.decode(shown)
        roles = [message["role"] for message in conversation["messages"]]
        assert roles == ["system", "user", *["assistant", "tool"] * number]
        found = [message["content"] != "" for message in conversation["messages"] if message["role"] == "tool"]
        assert found == [True] * min(number, 2) + [False] * (number == ROUNDS - 1)
    assert conversation["tools"][0]["function"]["name"] == "search"
    assert conversation["messages"][2]["tool_calls"][0]["id"] == "0.0"


@pytest.mark.usefixtures("answered")
def test_why_each_text_ended_is_recorded(query: Query) -> None:
    results = [row["result"] for row in query(select(steps.c.result).order_by(steps.c.sequence))]
    assert {(each["ended"], each["stop"]) for each in results} == {("stop", "\n\n")}
    assert all(each["raw"] == each["text"] + "\n\n" for each in results)
    assert "calls" not in results[0]
    assert "tokens" not in results[0]


@pytest.mark.usefixtures("answered")
def test_its_record_replays_is_traced_and_told_in_prov(engine: Engine, cotrail: Cotrail) -> None:
    with engine.connect() as connection:
        assert [each.divergence for each in replay_run(connection, "costless", find_chatting)] == [""]
        traced = read_question(connection, "costless", "q")
        document = provenance(read_trail(connection, "costless", [find_question(connection, "costless", "q")]))
    actions = [step.action for step in traced.steps if isinstance(step.action, Reason)]
    assert [len(action.prompt.paragraphs) for action in actions] == [0, 1, 2, 3]
    assert "Bridge 0" in json.dumps(document)
    assert cotrail("trace", "costless", "q").output.count("1 paragraph didn't fit the context") == 1
