from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.calls import Call, split_calls
from tests.cases import each_case

SEARCH = '<tool_call>\n{"name": "search", "arguments": {"query": "Oslö", "most": 3}}\n</tool_call>'
CALL = Call(name="search", arguments='{"query": "Oslö", "most": 3}')


def test_calls_are_read_in_their_order_and_the_text_stays_as_it_was_written() -> None:
    other = '<tool_call>{"name": "open"}</tool_call>'
    assert split_calls(f" I look. {SEARCH}\n{other} Then") == (
        " I look. \n Then",
        (CALL, Call(name="open", arguments="{}")),
    )


def test_nothing_is_left_between_calls_alone() -> None:
    assert split_calls(f"\n{SEARCH}\n{SEARCH}\n") == ("", (CALL, CALL))


@each_case(
    "text",
    [
        "\n",
        "<tool_call>{</tool_call>",
        '<tool_call>{"arguments": {}}</tool_call>',
        '<tool_call>{"name": 3}</tool_call>',
        '<tool_call>["name"]</tool_call>',
        '<tool_call>{"name": "search", "arguments": {}}',
        '{"name": "search", "arguments": {}}',
    ],
)
def test_what_is_no_whole_call_is_text(text: str) -> None:
    assert split_calls(text) == (text, ())


@given(st.text())
def test_a_text_without_calls_is_left_alone(text: str) -> None:
    assert split_calls(text) == (text, ())
