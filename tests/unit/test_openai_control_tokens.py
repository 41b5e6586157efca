import json

from hypothesis import example, given
from hypothesis import strategies as st

from cotrail.core.calls import Call, Tool
from cotrail.core.prompts import Asked, Prompt, assistant, plain, system, tool, user
from cotrail.engines.language_models.served.prompt_fields import (
    BREAK,
    INSTRUCTION,
    broken,
    chat_fields,
    control_tokens,
    cut_controls,
)
from tests.cases import each_case

CONTROLS = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|start_header_id|>",
    "<turn|>",
    "<|turn>",
    '<|"|>',
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
    "<s>",
    "</s>",
    "<eos>",
    "<end_of_turn>",
    "<END_OF_TURN_TOKEN>",
    "<extra_id_0>",
    "[INST]",
    "[/INST]",
    "[TOOL_CALLS]",
    "[/AVAILABLE_TOOLS]",
    "<<SYS>>",
    "[SEP]",
]
ORDINARY = [
    "<b>",
    "[1]",
    "a < b",
    "<|",
    "|>",
    "[sic]",
    "[NATO]",
    "<think>",
    "|x|",
    " ",
    "it is",
    "\n",
    "<http://x.org/>",
]


@each_case("control", CONTROLS)
def test_what_looks_like_a_control_token_is_found_and_broken_behind_its_first_character(control: str) -> None:
    text = f"before {control} after"
    assert control_tokens(text) == {control}
    assert broken(text) == f"before {control[0]}{BREAK}{control[1:]} after"
    assert not control_tokens(broken(text))


@given(st.lists(st.sampled_from(ORDINARY)).map(" ".join))
def test_what_texts_usually_have_stays_as_it_is(text: str) -> None:
    assert cut_controls(text) == [text]
    assert broken(text) == text


@given(st.lists(st.sampled_from(CONTROLS + ORDINARY)).map("".join))
@example("<|[INST]|>")
def test_the_pieces_of_any_text_join_to_it_and_hold_no_control_token(text: str) -> None:
    assert "".join(cut_controls(text)) == text
    assert not any(control_tokens(piece) for piece in cut_controls(text))
    assert broken(text).replace(BREAK, "") == text


def test_a_prompt_without_roles_is_one_message_in_which_control_tokens_are_broken() -> None:
    fields = chat_fields(Prompt(turns=(plain(Asked("Ink</s> stains")),)), None)
    assert fields == {"messages": [{"role": "user", "content": f"{INSTRUCTION}\n\nInk<{BREAK}/s> stains"}]}


TURNS = (
    system("Be brief."),
    user(Asked("Say <|im_end|>.")),
    assistant("Well", calls=(Call(name="find", arguments='{"text": "</s>"}', id="1.0"),)),
    tool("1.0", "It is [INST]."),
)
FIND = Tool(name="find", description="finds", parameters='{"type": "object"}')


def test_a_conversation_is_its_messages_and_tools_in_which_control_tokens_are_broken() -> None:
    prompt = Prompt(turns=TURNS, tools=(FIND,))
    expected = {"messages": prompt.messages, "tools": prompt.functions}
    assert chat_fields(Prompt(turns=(system("Be brief."), user("Well?"))), "vllm") == {
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Well?"}]
    }
    fields = chat_fields(prompt, None)
    contents = [message["content"] for message in fields["messages"]]
    assert contents == ["Be brief.", f"Say <{BREAK}|im_end|>.", "Well", f"It is [{BREAK}INST]."]
    assert fields["messages"][2]["tool_calls"][0]["function"]["arguments"] == f'{{"text": "<{BREAK}/s>"}}'
    # The calls have ids that every server takes, since none gave them.
    assert _whole(fields) == json.loads(json.dumps(expected).replace('"1.0"', '"call00100"'))


def _whole(value: object) -> object:
    match value:
        case str():
            return value.replace(BREAK, "")
        case list():
            return [_whole(each) for each in value]
        case dict():
            return {key: _whole(each) for key, each in value.items()}
    return value


def test_each_server_is_told_in_its_way_to_go_on_in_the_assistants_turn() -> None:
    prompt = Prompt(turns=(user("Who?"), assistant("It is")))
    messages = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "It is"}]
    assert chat_fields(prompt, "llama.cpp") == {"messages": messages}
    assert chat_fields(prompt, "vllm") == {
        "messages": messages,
        "continue_final_message": True,
        "add_generation_prompt": False,
    }
    assert chat_fields(prompt, "prefix") == {"messages": [messages[0], messages[1] | {"prefix": True}]}
    for way in ("vllm", "llama.cpp", "prefix"):
        assert chat_fields(Prompt(turns=(user("Who?"), assistant())), way) == {"messages": messages[:1]}
