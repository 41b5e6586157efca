"""ReCall, Tongyi DeepResearch, and a supervisor with researchers, under transcripts written by hand."""

from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.actions.generate import Prompted, Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.history import Finished
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import LimitReached
from cotrail.systems.tool_agents.tool_agent import DeepResearchSettings, deep_research
from cotrail.systems.tool_agents.trained_agents import ReCallSettings, TongyiSettings, recall, tongyi_deepresearch
from tests.cases import each_case
from tests.replay.driving import MadeUp, live
from tests.told import Ran, ToldModel, ran

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
FOUND = {"Brenn": (BRENN,), "Vell": (VELL,)}


def call(name: str, **arguments: Any) -> str:
    written = msgspec.json.encode({"name": name, "arguments": arguments}).decode()
    return f"<tool_call>\n{written}\n</tool_call>"


def messages(prompt: str) -> list[dict[str, Any]]:
    return msgspec.json.decode(prompt)["messages"]  # type: ignore[no-any-return]


# ReCall


def recalled(*lines: str, **settings: Any) -> Ran:
    return ran(partial(recall, QUESTION, {}, ReCallSettings(**settings)), lines, FOUND)


BOTH = f"I look.</think>{call('search', query='Brenn')}{call('search', query='Vell')}"


def test_recall_is_told_all_results_in_one_turn_of_the_users_and_thinks_again() -> None:
    result = recalled(BOTH, "Done.</think>It is \\boxed{the \\text{Amber} Sea}.")
    system, user, first, results, second = messages(result.prompts[1])
    assert '{"type":"function","function":{"name":"search"' in system["content"]
    assert user["content"] == QUESTION.text
    assert first == {"role": "assistant", "content": f"<think>{BOTH}"}
    assert results == {
        "role": "user",
        "content": (
            f'<tool_response>{{"name":"search","arguments":{{"query":"Brenn"}}}}\n[1] Brenn\n{BRENN.text}\n\n'
            "</tool_response>\n"
            f'<tool_response>{{"name":"search","arguments":{{"query":"Vell"}}}}\n[1] Vell\n{VELL.text}\n\n'
            "</tool_response>\n"
        ),
    }
    assert second == {"role": "assistant", "content": "<think>"}
    assert (result.answer.text, result.answer.limit) == ("the \\text{Amber} Sea", "")
    assert all(
        each.temperature == 0 and each.max_tokens == 512 for each in result.actions if isinstance(each, Prompted)
    )


@each_case(
    ("written", "repeated"),
    [
        ("<tool_call></tool_call>", [""]),
        ("<tool_call> \n{]\t</tool_call>", ["{]"]),
        ("<tool_call>a<tool_call>b</tool_call>c</tool_call>", ["a<tool_call>b"]),
        (call("search", query="Vell") + call("nothing"), ['{"name":"search","arguments":{"query":"Vell"}}', None]),
        (call("search", query=""), ['{"name":"search","arguments":{"query":""}}']),
        (call("search", query="\0"), ['{"name":"search","arguments":{"query":"\\u0000"}}']),
        (call("search", query="Vell") * 17, ['{"name":"search","arguments":{"query":"Vell"}}'] * 17),
    ],
)
def test_each_call_is_repeated_as_it_was_written_whatever_it_was(written: str, repeated: list[str | None]) -> None:
    result = recalled(written, "\\boxed{x}")
    said = messages(result.prompts[1])[3]["content"]
    blocks = [block.partition("\n")[0] for block in said.split("<tool_response>")[1:]]
    assert [each for each, known in zip(blocks, repeated, strict=True) if known not in (None, each)] == []


@each_case(
    "unbalanced",
    ["<tool_call>{", f"{BOTH}<tool_call>", f"</tool_call>{BOTH}", f"</tool_call>{BOTH}<tool_call>", "", " "],
)
def test_tags_that_do_not_match_call_nothing_and_end_it_without_an_answer(unbalanced: str) -> None:
    result = recalled(unbalanced)
    assert (result.answer.text, result.answer.limit, result.asked(Retrieve)) == ("", "", [])


def test_recall_ends_after_five_messages() -> None:
    result = recalled(*[BOTH] * 5)
    assert (result.answer.text, result.answer.limit) == ("", "turns")


def test_a_call_that_can_not_be_read_is_told_so() -> None:
    result = recalled("<tool_call>{]</tool_call>", "\\boxed{x}")
    assert messages(result.prompts[1])[3]["content"].startswith("<tool_response>{]\nThe call can't be read.")


# Tongyi DeepResearch


def investigated(*lines: str, **settings: Any) -> Ran:
    return ran(partial(tongyi_deepresearch, QUESTION, {}, TongyiSettings(**settings)), lines, FOUND)


def test_only_the_first_call_of_a_message_is_carried_out_and_a_visit_reads_for_its_goal() -> None:
    several = f"I look.\n{call('search', query=['Brenn', 'Vell'])}\n{call('search', query='x')}"
    visit = call("visit", title=["Vell", "Nowhere"], goal="its end")
    result = investigated(
        several, visit, "It ends in the Amber Sea.", "none", "<answer>Amber Sea</answer>", date="2025-09-01"
    )
    system, _, _, results = messages(result.prompts[1])
    assert system["content"].endswith("Today's date: 2025-09-01")
    assert [each.query for each in result.actions if isinstance(each, Retrieve)][:2] == ["Brenn", "Vell"]
    assert results["content"] == (
        f"<tool_response>\nResults for: Brenn\n[1] Brenn\n{BRENN.text}\nResults for: Vell\n[1] Vell\n{VELL.text}\n\n"
        "</tool_response>"
    )
    assert messages(result.prompts[2])[0]["content"].endswith(f"The goal: its end\n\nThe page:\n{VELL.text}\n")
    assert "What Vell says about the goal:\\nIt ends in the Amber Sea." in result.prompts[-1]
    assert result.answer.text == "Amber Sea"


def test_a_message_with_an_answer_calls_nothing() -> None:
    result = investigated(f"<answer>x</answer>{call('search', query='Brenn')}")
    assert (result.answer.text, result.asked(Retrieve)) == ("x", [])


def test_at_its_greatest_length_the_last_message_is_overwritten() -> None:
    dropped = f"<answer>x</answer>{call('search', query='Vell')}"
    result = investigated(call("search", query="Brenn"), dropped, "<answer>Amber Sea</answer>", context_tokens=1)
    assert (result.answer.text, result.answer.limit) == ("Amber Sea", "tokens of context")
    assert [each["role"] for each in messages(result.prompts[2])] == ["system", "user", "assistant", "user"]
    assert messages(result.prompts[2])[-1]["content"].startswith("The conversation has reached its greatest length.")
    assert [each.query for each in result.actions if isinstance(each, Retrieve)] == ["Brenn"]


def test_its_length_counts_what_a_tool_said_last() -> None:
    lines = (call("search", query="Brenn"), "x", "<answer>y</answer>")
    full = investigated(lines[0], lines[2])
    counted = len(full.prompts[1].split())  # as the model that is told what to write counts
    assert investigated(lines[0], lines[2], context_tokens=counted).answer.limit == ""
    assert investigated(*lines, context_tokens=counted - 1).answer.limit == "tokens of context"


@each_case(
    ("written", "answer"),
    [
        ("Amber Sea", "Amber Sea"),
        ("", ""),
        ("<answer>x", "<answer>x"),
        ("x</answer>", "x</answer>"),
        ("<answer>x</answer> <answer>y</answer>", "x"),
        ("</answer><answer>x", "x"),
        ("<answer></answer>", ""),
    ],
)
def test_at_its_greatest_length_a_message_without_tags_is_the_answer(written: str, answer: str) -> None:
    assert investigated(call("search", query="Brenn"), "", written, context_tokens=1).answer.text == answer


def test_a_budget_that_ends_before_the_first_message_leaves_the_question() -> None:
    agent = tongyi_deepresearch(QUESTION, {}, TongyiSettings())
    next(agent)
    asked = agent.throw(LimitReached("tokens"))
    assert isinstance(asked, Prompted)
    _, said = messages(asked.prompt.render())
    assert said["content"].startswith(f"{QUESTION.text}\n\nThe conversation has reached its greatest length.")


@each_case(
    ("written", "answer"),
    [
        ("<answer>x</answer> <answer>y</answer>", "x"),
        ("<answer> x <answer>y</answer>", "x <answer>y"),
        ("</answer><answer>x", "x"),
        ("<answer></answer>", ""),
        ("<ANSWER>x</ANSWER>", "No answer found."),
    ],
)
def test_the_first_answer_counts(written: str, answer: str) -> None:
    assert investigated(written).answer.text == answer


def test_only_the_first_call_is_read_where_it_ends() -> None:
    wrong = f"<tool_call>a</tool_call>{call('search', query='Brenn')}"
    result = investigated(wrong, "<answer>x</answer>")
    assert messages(result.prompts[1])[-1]["content"].startswith("<tool_response>\nThe call can't be read.")
    assert result.asked(Retrieve) == []


@each_case("line", ["", "I know it.", "<answer>x", "</answer>"])
def test_without_an_answer_between_tags_none_is_found(line: str) -> None:
    expected = "x" if line == "<answer>x" else "No answer found."
    assert investigated(line).answer.text == expected


def test_behind_the_last_call_there_is_no_answer() -> None:
    result = investigated(call("search", query="Brenn"), call("search", query="Brenn"), calls=2)
    assert (result.answer.text, result.answer.limit) == ("No answer found.", "calls")


# A supervisor with researchers


def researched(*lines: str, **settings: Any) -> Ran:
    return ran(partial(deep_research, QUESTION, {}, DeepResearchSettings(**settings)), lines, FOUND)


TASKS = call("research", topic="Brenn") + call("research", topic="The Vell")


@each_case("calls", ["own", "tagged"])
def test_researchers_work_side_by_side_and_the_report_has_their_findings(calls: str) -> None:
    result = researched(
        "Find the river, then its end.",
        TASKS,
        call("search", query="Brenn"),
        call("search", query="Vell"),
        "Found it.",
        "Found it too.",
        "Brenn lies on the Vell (Brenn).",
        "The Vell ends in the Amber Sea (Vell).",
        call("research_complete"),
        "The Vell flows into it.\nAnswer: Amber Sea.",
        calls=calls,
    )
    assert (result.answer.text, result.answer.limit) == ("Amber Sea", "")
    assert result.answer.paragraphs == (BRENN, VELL)
    [report] = messages(result.prompts[-1])
    assert "Brenn lies on the Vell (Brenn).\n\nThe Vell ends in the Amber Sea (Vell).\n\n" in report["content"]
    first, second = (messages(prompt)[1] for prompt in result.prompts[2:4])
    assert [first["content"], second["content"]] == ["Brenn", "The Vell"]


def test_tasks_beyond_the_researchers_are_told_so() -> None:
    result = researched("b", TASKS, "done", "found", call("research_complete"), "Answer: x", researchers=1)
    assert "At most 1 calls are carried out at once" in result.prompts[-2]


def test_the_supervisor_ends_at_its_rounds() -> None:
    result = researched("b", TASKS, "", "", "", "", "Answer: x", rounds=1)
    assert (result.answer.text, result.answer.limit) == ("x", "turns")


def test_a_budget_that_ends_before_the_brief_leaves_one_report() -> None:
    agent = deep_research(QUESTION, {}, DeepResearchSettings())
    next(agent)
    report = agent.throw(LimitReached("tokens"))
    with pytest.raises(StopIteration) as ended:
        agent.send(MadeUp(ToldModel(["Answer: x"]))(report))  # type: ignore[arg-type]
    assert (ended.value.value.text, ended.value.value.limit) == ("x", "tokens")


# Whatever they write

PIECES = st.sampled_from(
    [
        *(call("search", query="Brenn"), call("visit", title="Vell", goal="x"), call("research", topic="x")),
        *("<tool_call>", "</tool_call>", "{", "<answer>", "</answer>", "\\boxed{", "}", "\n", "x", " "),
    ]
)
SYSTEMS = {
    "recall": partial(recall, QUESTION, {}, ReCallSettings(turns=2)),
    "tongyi-deepresearch": partial(tongyi_deepresearch, QUESTION, {}, TongyiSettings(calls=2)),
    "deep-research": partial(deep_research, QUESTION, {}, DeepResearchSettings(rounds=2, researchers=2, turns=2)),
}


@pytest.mark.parametrize("name", SYSTEMS)
@given(line=st.lists(PIECES, max_size=6).map("".join))
def test_anything_ends_within_the_limits(name: str, line: str) -> None:
    trace, end = live(SYSTEMS[name](), MadeUp(ToldModel([line] * 60), FOUND))
    assert isinstance(end, Finished)
    assert sum(isinstance(action, Reason) for action, _ in trace) <= 60
