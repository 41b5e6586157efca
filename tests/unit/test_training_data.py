"""Runs as chats to train on: what a model wrote is told from what it was shown."""

import json
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from cotrail.core.actions.generate import Reason
from cotrail.core.actions.kind import UnreadAction, UnreadResult
from cotrail.core.edits import StepEdit
from cotrail.core.prompts import Prompt, plain
from cotrail.core.questions import Paragraph, Question
from cotrail.core.results import Failure, Result
from cotrail.errors import InputError
from cotrail.models.queries.traces import TracedQuestion, TracedStep
from cotrail.services.results.export_formats import INSERTED, conversations, lines
from cotrail.services.results.exporting import Source
from cotrail.systems.registry import find_system
from tests.cases import each_case
from tests.replay.driving import MadeUp, live
from tests.told import ToldModel
from tests.unit.made_runs import question, record, search, step, written

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
FOUND = {"river of Brenn": (BRENN,), "Vell": (VELL,), QUESTION.text: (BRENN,), "It lies on the Vell.": (VELL,)}
CALLS = '<tool_call>{"name": "search", "arguments": {"query": "river of Brenn"}}</tool_call>'
LAST = "So: <answer> the Amber Sea </answer>"


def answered(system: str, *texts: str, **fields: Any) -> TracedQuestion:
    """A question that the system answered while a model wrote these texts."""
    spec = find_system(system)
    trace, _ = live(partial(spec.open, QUESTION, {}, spec.settings())(), MadeUp(ToldModel(texts), FOUND))
    steps = [
        step(number, action, outcome if isinstance(outcome, Result) else None)
        for number, (action, outcome) in enumerate(trace)
    ]
    return question("q", steps=tuple(steps), **fields)


def chats(asked: TracedQuestion, **options: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(Source(record=record(), questions=[asked], **options), "chat")]


def test_a_text_that_is_continued_is_one_chat_in_which_what_was_found_is_a_tool_s() -> None:
    asked = answered(
        "search-r1", "I look. <search> river of Brenn </search> more", "So: <answer> the Amber Sea </answer>"
    )
    [chat] = chats(asked)
    assert [each["role"] for each in chat["messages"]] == ["user", "assistant", INSERTED, "assistant"]
    assert chat["mask"] == [0, 1, 0, 1]
    _, first, found, last = (each["content"] for each in chat["messages"])
    assert first == "I look. <search> river of Brenn </search>"
    assert found == f"\n\n<information>Doc 1(Title: Brenn) {BRENN.text}</information>\n\n"
    assert last == LAST
    assert (chat["id"], chat["steps"], chat["tools"]) == ("q.2", [0, 2], [])


def test_a_conversation_with_tools_is_one_chat_with_its_calls_under_the_system_s_ids() -> None:
    [chat] = chats(answered("tool-agent", f"I look.{CALLS}", "Answer: the Amber Sea."))
    assert [each["role"] for each in chat["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert chat["mask"] == [0, 0, 1, 0, 1]
    [call] = chat["messages"][2]["tool_calls"]
    assert call["id"] == chat["messages"][3]["tool_call_id"] == "0.0"
    assert BRENN.text in chat["messages"][3]["content"]
    assert [each["function"]["name"] for each in chat["tools"]] == ["search", "open"]


def shown(sequence: int, prompt: str, text: str, **fields: Any) -> TracedStep:
    """A step that was shown this text and wrote that one."""
    return replace(
        written(sequence, text, **fields), action=Reason(prompt=Prompt(turns=(plain(prompt),)), max_tokens=9)
    )


def test_prompts_that_do_not_continue_each_other_are_a_chat_each() -> None:
    steps = (
        shown(0, "Owls. Q", " a"),
        shown(1, "Hens. Q", " a"),
        shown(2, "Owls. Q a", " b"),
        shown(3, "Owls. Q c", "d"),
    )
    both, hens, other = chats(question(steps=steps))
    assert (both["id"], both["steps"], hens["steps"], other["steps"]) == ("q1.2", [0, 2], [1], [3])
    assert [each["content"] for each in both["messages"]] == ["Owls. Q", " a", " b"]
    assert [each["content"] for each in other["messages"]] == ["Owls. Q c", "d"]


def test_samples_of_one_prompt_are_a_chat_each_and_each_is_continued_by_its_own() -> None:
    steps = (shown(0, "Q", "a"), shown(1, "Q", "b"), shown(2, "Qa!", "c"), shown(3, "Qb!", "d"))
    assert [each["steps"] for each in chats(question(steps=steps))] == [[0, 2], [1, 3]]


@each_case(
    ("system", "texts"),
    [
        ("search-r1", ("<search>river of Brenn</search>", "<search>Vell</search>", "<answer>x</answer>")),
        ("tool-agent", (CALLS, CALLS, "Answer: x")),
    ],
)
def test_the_texts_of_a_chat_are_together_what_the_model_was_last_shown(system: str, texts: tuple[str, ...]) -> None:
    asked = answered(system, *texts)
    [chat] = conversations(asked)
    last = asked.steps[chat.steps[-1]].action
    assert isinstance(last, Reason)
    assert "".join(each["content"] for each in chat.messages[:-1]) == "".join(turn.text for turn in last.prompt.turns)
    assert sum(chat.mask) == len(texts)


def test_a_reward_is_a_metric_of_ones_choice() -> None:
    asked = question(steps=(written(0, "Yes."),), answer="yes indeed")
    assert [chats(asked)[0]["reward"], chats(asked, reward="answer_f1")[0]["reward"]] == [0.0, pytest.approx(2 / 3)]
    assert chats(replace(asked, answers=()))[0]["reward"] is None
    with pytest.raises(InputError, match="no metric 'taste'; reward by one of answer_em"):
        chats(asked, reward="taste")


def test_what_nobody_wrote_or_can_read_is_in_no_chat() -> None:
    unread = replace(written(1, "a"), action=UnreadAction(request={}), result=UnreadResult(result=1))
    broken = replace(written(2, "b"), result=None, failure=Failure(type="StepError", message="x"))
    assert chats(question(steps=(search(0, BRENN), unread, broken))) == []


def test_what_a_person_wrote_is_not_the_model_s() -> None:
    edited = written(0, "Owls do.", edit=StepEdit(by="ann", text="Owls do."))
    assert chats(question(steps=(edited,)))[0]["mask"] == [0, 0]
