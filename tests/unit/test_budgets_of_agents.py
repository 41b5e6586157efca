"""Systems at the end of a budget of steps: agents on every protocol, and whatever asks for much at once."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import msgspec

from cotrail.core.actions.generate import Prompted, generation_request
from cotrail.core.budgets import Budget, Budgets
from cotrail.core.calls import Call
from cotrail.core.history import Finished, Halt, Next, Outcome, Recorded
from cotrail.core.replay import Replay, advance
from cotrail.core.results import Result
from cotrail.core.system import Action, Answer, System
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.protocols.wire_protocols import PROTOCOLS
from cotrail.engines.language_models.served.request import Order
from cotrail.systems.registry import SYSTEMS
from cotrail.systems.spec import find_spec
from tests.cases import each_case
from tests.replay.driving import BINDING, found, record
from tests.unit.test_encoding import reopened
from tests.unit.test_systems import QUESTION, SHOTS, wrote

ARGUMENTS = {
    "search": '{"query": "harbours"}',
    "open": '{"title": "Ada"}',
    "visit": '{"title": ["Ada", "Grayle"], "goal": "harbours"}',
    "research": '{"topic": "harbours"}',
}
TAGGED = "".join(
    f'<tool_call>{{"name": "{name}", "arguments": {ARGUMENTS[name]}}}</tool_call>'
    for name in ("search", "open", "research")
)
"""Calls of every agent's tools: those that one hasn't are told so."""

VERSIONS = {"anthropic": "/v1", "chat": "/v1", "responses": "/v1", "gemini": "/v1beta"}
AGENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "tool-agent": ("tool-agent", {}),
    "tool-agent, tagged": ("tool-agent", {"calls": "tagged"}),
    "deep-research": ("deep-research", {}),
    "deep-research, tagged": ("deep-research", {"calls": "tagged"}),
    "recall": ("recall", {"begins": ""}),
    "tongyi-deepresearch": ("tongyi-deepresearch", {}),
    "vote of tool-agent": ("vote", {"of": "tool-agent", "samples": 3}),
    "vote of deep-research": ("vote", {"of": "deep-research", "samples": 2}),
}


def opened(agent: str) -> System:
    name, values = AGENTS[agent]
    spec = find_spec(SYSTEMS, name)
    return spec.open(QUESTION, SHOTS, msgspec.convert(values, spec.settings))


def replied(action: Action) -> Result:
    """A model that calls three tools at once for as long as it may, and searches that find something."""
    if not isinstance(action, Prompted):
        return found("Ada", "Grayle")
    if action.prompt.tools and action.calls:
        calls = tuple(Call(name=each.name, arguments=ARGUMENTS.get(each.name, "{}")) for each in action.prompt.tools)
        return msgspec.structs.replace(wrote("I look."), calls=tuple(each for each in calls if each.name in ARGUMENTS))
    return wrote(TAGGED if action.until == "stop" else "Answer: Grayle")


def ended(system: Callable[[], System], steps: int, reply: Callable[[Action], Outcome]) -> tuple[list[Action], Answer]:
    """What a system asks for whose budget is so many steps, as the store drives it, and its answer."""
    budgets = Budgets(question=Budget(steps=steps))
    asked: list[Action] = []
    history: list[Recorded] = []
    halt: Halt | None = None
    replay = Replay(system, BINDING)
    while True:
        following = replay.advance(history, halt)
        if isinstance(following, Next) and halt is None and history and len(history) >= steps:
            halt = Halt(after=len(history), limit="steps")
            following = replay.advance(history, halt)
        elif isinstance(following, Next) and halt is None:
            following = Next(following.steps[: budgets.room(len(history))])
            assert following.steps
        else:
            assert advance(system, history, BINDING, halt) == following
        if not isinstance(following, Next):
            assert isinstance(following, Finished)
            return asked, following.answer
        for step in following.steps:
            assert reopened(step.action) == step.action
            asked.append(step.action)
            history.append(record(step.action, reply(step.action)))


def body(api: Any, action: Prompted) -> dict[str, Any]:
    url = f"https://models.example{VERSIONS[api]}"
    endpoint = Endpoint(url=url, model="m", api=api, context=100_000)
    request = generation_request(action, BINDING)
    return PROTOCOLS[api].body(Order(endpoint=endpoint, dialect="openai", prompt=request.prompt, request=request))


def check_answered(api: str, sent: dict[str, Any]) -> None:
    """As the servers check it: behind a turn with calls stands an answer to each of them."""
    if api == "responses":
        items = [each for each in sent["input"] if "type" in each]
        made = [each["call_id"] for each in items if each["type"] == "function_call"]
        assert made == [each["call_id"] for each in items if each["type"] == "function_call_output"]
        return
    turns = sent["contents"] if api == "gemini" else sent["messages"]
    if api == "chat":
        turns = list(_merged(turns))
    for turn, following in zip(turns, [*turns[1:], {}], strict=True):
        assert turn.get("parts", turn.get("content")) or turn.get("tool_calls"), "servers refuse empty turns"
        assert _made(api, turn) == _answered(api, following)


def _merged(turns: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The turns of a chat with the answers of tools that stand beside each other as one."""
    together: list[dict[str, Any]] = []
    for turn in [*turns, {"role": ""}]:
        if turn["role"] == "tool":
            together.append(turn)
            continue
        if together:
            yield {"role": "tool", "content": together}
            together = []
        if turn["role"]:
            yield turn


def _made(api: str, turn: dict[str, Any]) -> list[str]:
    match api:
        case "chat":
            return [each["id"] for each in turn.get("tool_calls", ())]
        case "anthropic":
            return [each["id"] for each in _blocks(turn) if each["type"] == "tool_use"]
    return [each["functionCall"]["name"] for each in turn["parts"] if "functionCall" in each]


def _answered(api: str, turn: dict[str, Any]) -> list[str]:
    match api:
        case "chat":
            return [each["tool_call_id"] for each in turn.get("content", ())] if turn.get("role") == "tool" else []
        case "anthropic":
            return [each["tool_use_id"] for each in _blocks(turn) if each["type"] == "tool_result"]
    return [each["functionResponse"]["name"] for each in turn.get("parts", ()) if "functionResponse" in each]


def _blocks(turn: dict[str, Any]) -> list[dict[str, Any]]:
    content = turn.get("content", ())
    return [{"type": "text"}] if isinstance(content, str) else list(content)


WITHHELD: dict[str, dict[str, object]] = {
    "chat": {"tool_choice": "none"},
    "responses": {"tool_choice": "none"},
    "anthropic": {"tool_choice": {"type": "none"}},
    "gemini": {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}},
}


@each_case(("agent", "steps"), list(product(AGENTS, range(1, 7))))
def test_every_call_is_answered_on_every_protocol_and_the_last_request_offers_no_tools(agent: str, steps: int) -> None:
    asked, answer = ended(partial(opened, agent), steps, replied)
    messages = [action for action in asked if isinstance(action, Prompted)]
    assert answer.limit == "steps"
    assert len(asked) <= steps + 3
    for api, action in product(VERSIONS, messages):
        check_answered(api, body(api, action))
    last = messages[-1]
    for api in VERSIONS if last.prompt.tools and len(asked) > steps else ():
        assert WITHHELD[api].items() <= body(api, last).items()
    if agent.startswith(("tool-agent", "deep-research", "vote")):
        assert answer.text == "Grayle"


WIDE = {
    "vote": (4, "Grayle"),
    "self-consistency": (3, "So the answer is yes."),
    "rethinking": (3, "So the answer is yes."),
    "recite": (4, "Grayle"),
    "verify-and-edit": (3, " The answer is Grayle."),
    "dsp": (4, " I see.\nSearch Query: Ada\nAnswer: Grayle"),
    "self-consistency-react": (3, "\nAnswer: Grayle"),
}
"""Systems that ask for five steps and more at once: how many they take of a budget of three, with a last one where they
answer by one; and what the model writes."""


@each_case(("name", "taken", "text"), [(name, *row) for name, row in WIDE.items()])
def test_what_is_asked_for_at_once_is_what_the_budget_has_room_for(name: str, taken: int, text: str) -> None:
    spec = find_spec(SYSTEMS, name)
    asked, answer = ended(lambda: spec.open(QUESTION, SHOTS, spec.settings()), 3, lambda _: wrote(text))
    assert (len(asked), answer.limit) == (taken, "steps")
    assert answer.text in ("Grayle", "yes")
