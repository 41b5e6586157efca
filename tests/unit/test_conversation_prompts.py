"""Prompts with roles: what is shown, what goes where not all fits, and what is refused."""

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.calls import Call, Tool
from cotrail.core.demonstrations import Demonstrations
from cotrail.core.prompts import (
    Asked,
    Demonstrated,
    Prompt,
    Shown,
    Text,
    Turn,
    Written,
    assistant,
    plain,
    system,
    tool,
    user,
)
from cotrail.core.questions import Paragraph
from cotrail.engines.language_models.packing import pack
from cotrail.errors import PromptTooLongError
from tests.cases import each_case

RIVER = Paragraph(id="p1", title="Wend", text="The Wend flows to the sea.")
TOWN = Paragraph(id="p2", title="Sild", text="Sild lies on the Wend.")
TALK = Prompt(
    turns=(
        system("Be brief."),
        user("Tell me: ", Asked("Where is Sild?", "[Question]: {question}")),
        assistant(Written("On the Wend.")),
        user(Shown(paragraph=TOWN, form="Reference: {text}"), Text(" Think again.", 2)),
    )
)


def test_the_turns_are_messages_of_their_pieces_texts() -> None:
    assert TALK.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Tell me: [Question]: Where is Sild?"},
        {"role": "assistant", "content": "On the Wend."},
        {"role": "user", "content": "Reference: Sild lies on the Wend. Think again."},
    ]
    assert json.loads(TALK.render()) == {"messages": TALK.messages}
    assert TALK.digest == sha256(TALK.render().encode()).hexdigest()


def test_a_prompt_of_plain_text_is_its_pieces_and_nothing_else() -> None:
    prompt = Prompt(turns=(plain("Thought 1: ", Written("I search."), Shown(paragraph=RIVER), "\nThought 2: "),))
    assert prompt.render() == "Thought 1: I search.Wend\nThe Wend flows to the sea.\nThought 2: "
    assert prompt.digest == sha256(prompt.render().encode()).hexdigest()
    assert prompt.append(Written("It is far.")).render() == prompt.render() + "It is far."


def test_a_model_goes_on_in_a_plain_turn_and_in_its_own() -> None:
    assert Prompt(turns=(plain("Once"),)).continues_last_turn
    assert not TALK.continues_last_turn
    assert TALK.add(assistant("Well, ")).continues_last_turn


def test_what_the_model_wrote_stands_in_the_turn_that_it_went_on_in_or_in_its_own() -> None:
    plainly = Prompt(turns=(plain("Once"),)).wrote(" upon").wrote(" a time")
    assert plainly.render() == "Once upon a time"
    assert plainly.turns[0].pieces == (Text("Once"), Written(" upon"), Written(" a time"))
    asked = Prompt(turns=(user("Where?"),))
    assert asked.wrote("On the") == asked.add(assistant(Written("On the")))
    assert asked.wrote("On the").wrote(" Wend.") == asked.add(assistant(Written("On the"), Written(" Wend.")))


def test_calls_come_with_what_the_model_wrote() -> None:
    calls = (Call(name="search", arguments="{}", id="0.0"),)
    asked = Prompt(turns=(user("Where?"),))
    assert asked.wrote("I look.", calls) == asked.add(assistant(Written("I look."), calls=calls))
    assert asked.wrote("I").wrote(" look.", calls).turns[1].calls == calls


def test_calls_and_their_answers_are_in_the_messages() -> None:
    call = Call(name="search", arguments='{"query": "Sild"}', id="2.0")
    wanted = Tool(name="search", description="Search.", parameters='{"type": "object"}')
    asked = Prompt(turns=(user("Where?"), assistant(calls=(call,)), tool("2.0", "Nothing.")), tools=(wanted,))
    function = {"name": "search", "arguments": '{"query": "Sild"}'}
    assert asked.messages[1:] == [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "2.0", "type": "function", "function": function}]},
        {"role": "tool", "content": "Nothing.", "tool_call_id": "2.0"},
    ]
    assert asked.functions[0]["function"]["parameters"] == {"type": "object"}
    assert json.loads(asked.render())["tools"] == asked.functions


def test_what_stands_in_a_paragraph_is_no_place_of_its_form() -> None:
    odd = Paragraph(id="p", title="{text} {title}", text="{title} {question}")
    prompt = Prompt(turns=(plain(Shown(paragraph=odd), Asked("{question}?", " Q: {question}")),))
    assert prompt.render() == "{text} {title}\n{title} {question} Q: {question}?"


def test_pieces_go_by_what_they_yield_and_of_equal_ones_the_later_first() -> None:
    turns = (user(Shown(paragraph=RIVER), Shown(paragraph=TOWN), Text("x", 3), Text("y", 3), "always"),)
    prompt = Prompt(turns=turns)
    shown = [prompt.keep(0, kept).messages[0]["content"].rpartition(".")[2] for kept in (4, 3, 2)]
    assert shown == ["xyalways", "xalways", "always"]
    assert [each.title for each in prompt.keep(0, 1).paragraphs] == ["Wend"]
    assert prompt.keep(0, 0).messages == [{"role": "user", "content": "always"}]


def test_a_turn_that_is_left_with_nothing_goes_too() -> None:
    assert [turn.role for turn in TALK.keep(0, 0).turns] == ["system", "user", "assistant"]


@given(st.integers(0, 200))
def test_a_conversation_is_packed_by_the_tokens_of_the_whole(limit: int) -> None:
    def tokens(prompt: Prompt) -> int:
        return sum(len(turn.text) + 5 for turn in prompt.turns)

    try:
        packed = pack(TALK, len, limit, 0, tokens)
    except PromptTooLongError:
        assert tokens(TALK.keep(0, 0)) > limit
        return
    assert packed == TALK.keep(0, len(packed.yielding))
    assert tokens(packed) <= limit
    more = TALK.keep(0, len(packed.yielding) + 1)
    assert more == packed or tokens(more) > limit


@each_case(
    "turns",
    [
        (),
        (plain("a"), plain("b")),
        (plain("a"), user("b")),
        (Turn(role="user", pieces=(Demonstrated(demonstrations=Demonstrations()),) * 2),),
    ],
)
def test_turns_that_make_no_prompt_are_refused(turns: tuple[Turn, ...]) -> None:
    with pytest.raises(ValueError, match="a prompt"):
        Prompt(turns=turns)
