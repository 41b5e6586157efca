"""The agent that calls tools, under transcripts written by hand."""

from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Open, Retrieve
from cotrail.core.history import Finished
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import LimitReached
from cotrail.systems.tool_agents.tool_agent import ToolAgentSettings, tool_agent
from tests.cases import each_case
from tests.replay.driving import MadeUp, found_paragraphs, live
from tests.told import Ran, ToldModel, ran

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
FOUND = {"river of Brenn": (BRENN,), "Vell": (VELL,), "vel": (VELL,)}


def call(name: str, arguments: str) -> str:
    return f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>'


SEARCH = call("search", '{"query": "river of Brenn"}')
OPEN = call("open", '{"title": "Vell"}')


def told(*lines: str, **settings: Any) -> Ran:
    return ran(partial(tool_agent, QUESTION, {}, ToolAgentSettings(**settings)), lines, FOUND)


def messages(ran: Ran) -> list[dict[str, Any]]:
    return msgspec.json.decode(ran.prompts[-1])["messages"]  # type: ignore[no-any-return]


def test_it_searches_and_opens_at_once_and_states_its_answer() -> None:
    result = told(f"I look.{SEARCH}{OPEN}", "It flows into it.\nAnswer: the Amber Sea.")
    system, user, asked, first, second = messages(result)
    assert (system["role"], user) == ("system", {"role": "user", "content": QUESTION.text})
    assert [each["id"] for each in asked["tool_calls"]] == ["0.0", "0.1"]
    assert first == {"role": "tool", "tool_call_id": "0.0", "content": f"[1] Brenn\n{BRENN.text}\n"}
    assert second == {"role": "tool", "tool_call_id": "0.1", "content": f"[1] Vell\n{VELL.text}\n"}
    assert (result.answer.text, result.answer.limit) == ("the Amber Sea", "")
    assert result.answer.paragraphs == (BRENN, VELL)
    assert [type(each) for each in result.actions] == [Reason, Retrieve, Open, Reason]


def test_a_model_that_was_not_tuned_to_call_tools_is_told_how() -> None:
    result = told(f"I look.{SEARCH}{OPEN}", "Answer: x", calls="tagged")
    system, _, asked, results = messages(result)
    assert '{"type":"function","function":{"name":"search"' in system["content"]
    assert asked == {"role": "assistant", "content": f"I look.{SEARCH}{OPEN}"}
    assert results["role"] == "user"
    assert results["content"].count("<tool_response>") == 2
    assert all(not each.prompt.tools for each in result.actions if isinstance(each, Reason))


def test_a_title_that_is_no_pages_opens_the_page_that_is_most_like_it() -> None:
    result = told(call("open", '{"title": "vel"}'), "Answer: x")
    assert [each.title for each in result.actions if isinstance(each, Open)] == ["vel"]
    assert result.answer.paragraphs == (VELL,)


@each_case(
    ("wrong", "problem"),
    [
        (call("fetch", "{}"), "There is no tool 'fetch'. There are: search, open."),
        (call("search", '{"q": 1}'), "The arguments of search can't be read. They are a JSON object with: query."),
        (call("open", '{"title": "Vell", "part": 0}'), "The arguments of open can't be read. They are a JSON object"),
        ('<tool_call>{"name": "search", "argu', "The call can't be read."),
    ],
)
def test_what_can_not_be_carried_out_is_told_and_searches_nothing(wrong: str, problem: str) -> None:
    result = told(wrong, "Answer: x")
    assert messages(result)[-1]["content"].startswith(problem)
    assert (result.answer.text, result.asked(Retrieve)) == ("x", [])


def test_the_same_search_for_ever_ends_at_the_turns_with_a_last_answer() -> None:
    result = told(SEARCH, SEARCH, "Answer: Amber Sea", turns=2)
    assert (result.answer.text, result.answer.limit) == ("Amber Sea", "turns")
    assert messages(result)[-1]["role"] == "user"
    assert messages(result)[-1]["content"].startswith("You can't call tools any more.")


def test_without_a_last_answer_there_is_none() -> None:
    result = told(SEARCH, SEARCH, searches=2, answers_at_limit=False)
    assert (result.answer.text, result.answer.limit, result.answer.sentences) == ("", "searches", ())


def test_calls_beyond_the_most_are_told_so() -> None:
    result = told(SEARCH * 18, "Answer: x")
    assert len(result.asked(Retrieve)) == 16
    assert messages(result)[-1]["content"].startswith("At most 16 calls")


def test_a_long_conversation_goes_on_from_its_summary() -> None:
    result = told(SEARCH, "Brenn lies on the Vell.", "Answer: x", context="summarise", context_tokens=1)
    _, resumed = messages(result)
    assert resumed["content"].startswith(f"{QUESTION.text}\n\nThis was found so far:\nBrenn lies on the Vell.\n")
    assert "tool_calls" not in result.prompts[-1]


def test_a_message_without_a_stated_answer_is_the_answer_and_an_empty_one_none() -> None:
    assert told("The Amber Sea").answer.text == "The Amber Sea"
    assert told(" ").answer.text == ""


def test_at_a_budgets_end_it_answers_from_what_was_found() -> None:
    agent = tool_agent(QUESTION, {}, ToolAgentSettings())
    first = next(agent)
    assert isinstance(first, Reason)
    agent.send(MadeUp(ToldModel([SEARCH]))(first))  # type: ignore[arg-type]
    agent.send((found_paragraphs(BRENN),))
    last = agent.throw(LimitReached("tokens"))
    assert isinstance(last, Reason)
    assert BRENN.text in last.prompt.render()
    with pytest.raises(StopIteration) as ended:
        agent.send(MadeUp(ToldModel(["Answer: x"]))(last))  # type: ignore[arg-type]
    assert (ended.value.value.text, ended.value.value.limit) == ("x", "tokens")


PIECES = st.sampled_from([SEARCH, OPEN, "<tool_call>", "</tool_call>", "{", '"', "Answer:", "\n", "x", " ", "<answer>"])


@given(st.lists(st.lists(PIECES, max_size=6).map("".join), min_size=4, max_size=4))
def test_anything_ends_within_the_turns(lines: list[str]) -> None:
    system = tool_agent(QUESTION, {}, ToolAgentSettings(turns=3))
    trace, end = live(system, MadeUp(ToldModel(lines), FOUND))
    assert isinstance(end, Finished)
    assert sum(isinstance(action, Reason) for action, _ in trace) <= 4
