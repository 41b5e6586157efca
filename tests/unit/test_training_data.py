"""Runs as chats to train on: what a model wrote is told from what it was shown."""

import json
import re
from functools import partial
from pathlib import Path
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
from cotrail.services.results.export_formats import lines
from cotrail.services.results.exporting import Rival, Source
from cotrail.services.results.training_data import INSERTED, conversations
from cotrail.services.results.verdicts import Verdict
from cotrail.systems.judge.rubric import Judgement
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


def test_chats_are_given_to_verl_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    right = {"answers": ("the Amber Sea",), "answer": "the Amber Sea"}
    asked = [
        answered("tool-agent", f"I look.{CALLS}", "Answer: the Amber Sea."),
        answered("search-r1", "I look. <search> river of Brenn </search>", LAST, **right),
        question("wrong", answer="no"),
    ]
    Path("chat.jsonl").write_bytes(b"".join(lines(Source(record=record(), questions=asked), "chat")))
    page = (Path(__file__).parents[2] / "docs" / "exports.md").read_text()
    [block] = [each for each in re.findall(r"(?ms)^```python\n(.*?)^```", page) if "rl.parquet" in each]
    exec(compile(block, "exports.md", "exec"), {})
    trained, prompts = (pq.read_table(name).to_pylist() for name in ("sft.parquet", "rl.parquet"))
    assert [each["role"] for each in trained[1]["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert trained[0]["messages"][2]["tool_calls"][0]["function"]["name"] == "search"
    assert [row["question_id"] for row in trained] == ["q", "q"]
    assert [[each["role"] for each in row["prompt"]] for row in prompts] == [["system", "user"], ["user"], ["user"]]
    assert prompts[1]["reward_model"] == {"style": "rule", "ground_truth": {"target": ["the Amber Sea"]}}
    assert prompts[2]["extra_info"] == {"index": 2, "question_id": "wrong"}
    assert {row["data_source"] for row in prompts} == {"searchR1_jsonl"}


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
    with pytest.raises(InputError, match="neither a metric nor a judge 'taste'; reward by one of answer_em"):
        chats(asked, reward="taste")


def test_what_nobody_wrote_or_can_read_is_in_no_chat() -> None:
    unread = replace(written(1, "a"), action=UnreadAction(request={}), result=UnreadResult(result=1))
    broken = replace(written(2, "b"), result=None, failure=Failure(type="StepError", message="x"))
    with pytest.raises(InputError, match="has no texts of a language model"):
        chats(question(steps=(search(0, BRENN), unread, broken)))


def test_what_a_person_wrote_is_not_the_model_s() -> None:
    edited = written(0, "Owls do.", edit=StepEdit(by="ann", text="Owls do."))
    assert chats(question(steps=(edited,)))[0]["mask"] == [0, 0]


def preferences(one: TracedQuestion, two: TracedQuestion, **options: Any) -> list[dict[str, Any]]:
    rival = Rival(source=Source(record=record(id="run-2"), **options), find=lambda key: two if key == two.key else None)
    source = Source(record=record(), questions=[one], rival=rival, **options)
    return [json.loads(line) for line in lines(source, "preferences")]


def test_texts_that_answer_better_than_the_other_run_s_are_preferred() -> None:
    looks = "I look. <search> river of Brenn </search>"
    right = answered("search-r1", looks, LAST, answers=("the Amber Sea",), answer="the Amber Sea")
    wrong = answered("search-r1", looks, "<answer> a lake </answer>", answers=("the Amber Sea",), answer="a lake")
    for pair, runs in (
        (preferences(right, wrong), ["run-1", "run-2"]),
        (preferences(wrong, right), ["run-2", "run-1"]),
    ):
        [only] = pair
        assert [each["role"] for each in only["prompt"]] == ["user", "assistant", INSERTED]
        assert [only[side][0]["content"] for side in ("chosen", "rejected")] == [LAST, "<answer> a lake </answer>"]
        assert (only["score_chosen"], only["score_rejected"], only["runs"]) == (1, 0, runs)


def test_a_judge_s_verdicts_prefer_too() -> None:
    one, two = answered("search-r1", LAST), answered("search-r1", "<answer> a lake </answer>")
    said = {
        score: Verdict(
            judge="correct/gpt",
            run="j",
            judgement=Judgement(rubric="correct", verdict="correct", score=score),
            failure=None,
            ended_by="answer",
        )
        for score in (0.0, 1.0)
    }
    theirs = Source(record=record(id="run-2"), verdicts={"q": (said[1.0],)}, reward="correct/gpt")
    rival = Rival(source=theirs, find=lambda _: two)
    ours = replace(theirs, record=record(), questions=[one], verdicts={"q": (said[0.0],)}, rival=rival)
    [pair] = map(json.loads, lines(ours, "preferences"))
    assert pair["chosen"][0]["content"] == "<answer> a lake </answer>"
    with pytest.raises(InputError, match=r"neither a metric nor a judge 'bleu'; reward by one of .*correct/gpt"):
        list(lines(replace(ours, reward="bleu"), "preferences"))


def test_pairs_need_another_run_other_rewards_and_a_beginning_in_common() -> None:
    one = answered("search-r1", LAST, answers=("the Amber Sea",), answer="the Amber Sea")
    with pytest.raises(InputError, match="--against"):
        list(lines(Source(record=record(), questions=[one]), "preferences"))
    elsewhere = replace(one, key="other")
    shown_else = replace(one, steps=(search(0, BRENN), *answered("self-ask", LAST).steps), answer="a lake")
    for two in (one, elsewhere, shown_else):
        with pytest.raises(InputError, match="has no texts that begin as those of the other run"):
            preferences(one, two)
