"""Whole systems over each provider's API: the chains that a chat without thoughts gives, and no thought in a prompt."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from cotrail.core.actions.generate import Read, Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.calls import Call
from cotrail.core.history import Finished
from cotrail.core.ports.language_model import LanguageModel
from cotrail.core.questions import Question
from cotrail.core.system import System
from cotrail.systems.ircot import IRCoTSettings, ircot
from cotrail.systems.searchain.prompts import SearChainSettings
from cotrail.systems.searchain.system import searchain
from cotrail.systems.tool_agents.tool_agent import ToolAgentSettings, tool_agent
from tests.integration.provider_answers import DIALECTS, Dialect
from tests.integration.served import Reply, Served, delta, streamed
from tests.replay.driving import MadeUp, replayed
from tests.unit.test_systems import SHOTS

Make = Callable[..., LanguageModel]

QUESTION = Question(id="q", text="Where does the river that Ada bridged end?")
THOUGHT = "Zwicky is what I think of first. Then of [Query 1]: Zwicky?"
CHAIN = """[Query 1]: Which river did Ada bridge?
[Answer 1]: The Vell.
[Query 2]: Where does the Vell end?
[Answer 2]: In the Amber Sea.
[Final Content]: The Vell [1] ends in the Amber Sea [2]. So the final answer is the Amber Sea."""
SEARCH = (Call(name="search", arguments='{"query":"Vell"}'), Call(name="search", arguments='{"query":"Amber Sea"}'))

SEARCHAIN = SearChainSettings(reader="extractor", tracing=False)

Said = tuple[str, tuple[Call, ...]]
SYSTEMS: dict[str, tuple[Callable[[], System], Sequence[Said]]] = {
    "ircot": (
        partial(ircot, QUESTION, SHOTS, IRCoTSettings()),
        [("Ada bridged the Vell.", ()), ("So the answer is: the Amber Sea.", ()), ("the Amber Sea", ())],
    ),
    "searchain": (partial(searchain, QUESTION, {}, SEARCHAIN), [(CHAIN, ())]),
    "tool agent": (
        partial(tool_agent, QUESTION, {}, ToolAgentSettings()),
        [("I look.", SEARCH), ("The Amber Sea.", ())],
    ),
}


def as_chat(text: str, calls: Sequence[Call]) -> Reply:
    called = [
        {"index": place, "id": f"c{place}", "function": {"name": call.name, "arguments": call.arguments}}
        for place, call in enumerate(calls)
    ]
    return streamed([delta(content=text), *([delta(tool_calls=called)] if called else []), delta("stop"), "[DONE]"])


def chain(system: Callable[[], System], model: LanguageModel) -> tuple[list[Any], Any]:
    """What a system asked for, without what only engines see, and its answer."""
    trace, ended = replayed(system, MadeUp(model))
    assert isinstance(ended, Finished), ended
    shown: list[Any] = []
    for action, _ in trace:
        match action:
            case Retrieve():
                shown.append(("search", action.query))
            case Read() | Reason():
                turns = action.prompt.turns
                called = [[(call.id, call.name, json.loads(call.arguments)) for call in turn.calls] for turn in turns]
                shown.append((type(action).__name__, [(turn.role, turn.text) for turn in turns], called))
            case _:
                shown.append(type(action).__name__)
    return shown, (ended.answer.text, ended.answer.sentences)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_a_systems_chain_is_that_of_a_chat_without_thoughts(
    open_served: Make, served: Served, dialect: Dialect, name: str
) -> None:
    system, said = SYSTEMS[name]
    served.replies = [as_chat(text, calls) for text, calls in said]
    expected = chain(system, open_served(served.url, api="chat"))
    before = len(served.generations)

    served.replies = [streamed(dialect.streamed(thought=THOUGHT, text=text, calls=calls)) for text, calls in said]
    url = served.url.removesuffix("/v1") + dialect.version
    model = open_served(url, api=dialect.api, thinks="field", thought_tokens=1024)
    assert chain(system, model) == expected
    requests = [json.dumps(asked.body) for asked in served.generations[before:]]
    assert len(requests) == before
    # Only within a loop of calls are thoughts handed back, in their own blocks.
    assert not any("Zwicky" in request for request in requests) or name == "tool agent"
    assert "Amber Sea" in expected[1][0]


@pytest.mark.parametrize("hands_back", ["calls", "all"])
def test_rounds_of_a_conversation_hand_thoughts_back_where_the_table_says_so(
    open_served: Make, served: Served, hands_back: str
) -> None:
    dialect = DIALECTS["anthropic"]
    unsolved = "[Query 1]: Which river did Ada bridge?\n[Answer 1]: The Vell.\n[Unsolved Query]: Where does it end?"
    served.replies = [streamed(dialect.streamed(thought=THOUGHT, text=text)) for text in (unsolved, CHAIN)]
    model = open_served(served.url, api="anthropic", thinks="field", thought_tokens=1024, hands_back=hands_back)
    chain(partial(searchain, QUESTION, {}, SEARCHAIN), model)
    conversations = [asked.body["messages"] for asked in served.generations if len(asked.body["messages"]) > 1]
    assert conversations
    for messages in conversations:
        blocks = [block for message in messages if message["role"] == "assistant" for block in message["content"]]
        signatures = [block["signature"] for block in blocks if block["type"] == "thinking"]
        written = [message for message in messages if message["role"] == "assistant"]
        assert signatures == (["s=="] * len(written) if hands_back == "all" else [])
