"""A served model's thoughts are recorded apart from its text, wherever the server writes them."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cotrail.core.actions.generate import check_answered
from cotrail.core.generation import Until
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel
from cotrail.core.prompts import Prompt, assistant, plain, system, tool, user
from cotrail.core.results import Generated
from cotrail.errors import BlockedError, UnansweredError
from tests.integration.served import Served, answer, piece, streamed

Make = Callable[..., LanguageModel]

CHAT = Prompt(turns=(system("Answer."), user("Who built it?")))
THOUGHT = "A bridge. Brenn, I think."
TEXT = "Brenn built it. And more."


def delta(finish: str | None = None, /, **fields: object) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}], "model": "m-2026"}


def pieces(text: str, size: int = 5) -> Iterator[str]:
    return (text[place : place + size] for place in range(0, len(text), size))


def chunks(kind: str, text: str) -> list[dict[str, Any]]:
    thinking = [{"type": "text", "text": text}]
    content: object = [{"type": "thinking", "thinking": thinking}] if kind == "content" else text
    detail = [{"type": "reasoning.text", "index": 0, "text": text}]
    return [delta(**{kind: detail if kind == "reasoning_details" else content})]


def events(*said: dict[str, Any], finish: str = "stop", **usage: Any) -> list[dict[str, Any] | str]:
    counts = {"prompt_tokens": 9, "completion_tokens": 20, **usage}
    return [*said, delta(finish), {"choices": [], "usage": counts}, "[DONE]"]


def asked(model: LanguageModel, prompt: Prompt = CHAT, max_tokens: int = 50) -> Generated:
    return model.generate(GenerationRequest(prompt, "sentence", max_tokens))


@pytest.mark.parametrize("kind", ["reasoning_content", "reasoning", "reasoning_details", "content"])
def test_thoughts_in_fields_are_no_text(open_served: Make, served: Served, kind: str) -> None:
    thoughts = [each for piece in pieces(THOUGHT) for each in chunks(kind, piece)]
    details: dict[str, Any] = {"completion_tokens_details": {"reasoning_tokens": 12}}
    served.replies = [streamed(events(*thoughts, *(delta(content=piece) for piece in pieces(TEXT)), **details))]
    result = asked(open_served(served.url, api="chat", thinks="field", thought_tokens=100))
    assert (result.text, result.thoughts, result.thoughts_are) == ("Brenn built it.", THOUGHT, "whole")
    assert (result.served_by, result.carried) == ("m-2026", "")
    body = served.generations[0].body
    assert body["max_tokens"] == 150
    assert "stop" not in body


@pytest.mark.parametrize(
    ("thinks", "written"),
    [
        ("tags", f"<think>{THOUGHT}</think>\n\n{TEXT}"),
        ("tags", f"{THOUGHT}</think>{TEXT}"),
        ("inside", f"{THOUGHT}\n</think>\n{TEXT}"),
        ("tags", TEXT),
        ("no", TEXT),
        ("no", f"<|START_RESPONSE|>{TEXT}<|END_RESPONSE|>"),
        ("field", f"<|channel|>final<|message|>{TEXT}<|return|>"),
    ],
)
def test_thoughts_between_marks_are_no_text(open_served: Make, served: Served, thinks: str, written: str) -> None:
    served.replies = [streamed(events(*(delta(content=piece) for piece in pieces(written))))]
    result = asked(open_served(served.url, api="chat", thinks=thinks))
    assert result.text == "Brenn built it."
    assert result.thoughts == (THOUGHT if "</think>" in written else "")


@pytest.mark.parametrize("thinks", ["tags", "inside"])
@pytest.mark.parametrize("until", ["sentence", "end"])
def test_a_thought_that_quotes_its_mark_becomes_no_sentence(
    open_served: Make, served: Served, thinks: str, until: Until
) -> None:
    quoting = "The text says </think> here. So it is Ash. No: Brenn."
    written = f"{'<think>' * (thinks == 'tags')}{quoting}\n</think>\n\n{TEXT}"
    served.replies = [streamed(events(*(delta(content=piece) for piece in pieces(written))))]
    result = open_served(served.url, api="chat", thinks=thinks).generate(GenerationRequest(CHAT, until, 50))
    assert (result.thoughts, result.text) == (quoting, TEXT if until == "end" else "Brenn built it.")


def test_a_sentence_that_was_still_a_thought_is_taken_back_where_the_stream_is_read_on(
    open_served: Make, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "k")
    written = f"<think>A.\n</think>\nSo it is Ash. No.\n</think>\n\n{TEXT}"
    served.replies = [streamed(events(*(delta(content=piece) for piece in pieces(written))))]
    result = asked(open_served(served.url, api="chat", thinks="tags", key_variable="KEY"))
    assert (result.thoughts, result.text) == ("A.\n</think>So it is Ash. No.", "Brenn built it.")


def test_a_mark_that_an_answer_quotes_blocks_nothing(open_served: Make, served: Served) -> None:
    served.replies = [streamed(events(delta(content="The tag </think> closes a thought.")))]
    assert asked(open_served(served.url, api="chat")).text == "The tag </think> closes a thought."


@pytest.mark.parametrize(
    ("written", "setting"),
    [(f"<think>{THOUGHT}</think>{TEXT}", "tags"), (f"{THOUGHT}</think>{TEXT}", "inside"), ("<think>", "tags")],
)
def test_marks_that_the_table_does_not_know_of_block(
    open_served: Make, served: Served, written: str, setting: str
) -> None:
    served.replies = [streamed(events(*(delta(content=piece) for piece in pieces(written))))]
    with pytest.raises(BlockedError, match=f'set thinks = "{setting}" and thought_tokens') as caught:
        asked(open_served(served.url, api="chat"))
    assert isinstance(caught.value.written, Generated)
    assert caught.value.written.generated_tokens == 20


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"thinks": "field"}, events(delta(reasoning="Hm, and"), finish="length")),
        ({"thinks": "field"}, events(delta(reasoning="Hm."))),
        ({}, events(delta(reasoning_content="Hm, and"), finish="length")),
        ({"thinks": "tags"}, events(delta(content="<think>Hm, and"), finish="length")),
        ({"thinks": "inside"}, events(delta(content="Hm, and"), finish="length")),
        ({"thinks": "tags"}, events(delta(content="Hm, and"), finish="length")),
        ({"thinks": "hidden"}, events(delta(content=""), finish="length")),
        ({}, events(delta(content=""), finish="length")),
        ({}, events(delta(content=""), completion_tokens_details={"reasoning_tokens": 20})),
    ],
)
def test_whoever_only_thinks_has_not_answered(
    open_served: Make, served: Served, table: dict[str, Any], said: list[Any]
) -> None:
    served.replies = [streamed(said)]
    result = asked(open_served(served.url, api="chat", **table))
    assert (result.text, result.ended) == ("", "thoughts")
    with pytest.raises(UnansweredError, match="raise thought_tokens"):
        check_answered(result)


@pytest.mark.parametrize(
    "said",
    [
        events(delta(refusal="I can't help with that.")),
        events(delta(content="I can't"), finish="content_filter"),
        events(delta(content=""), finish="content_filter"),
    ],
)
def test_a_refusal_is_no_answer(open_served: Make, served: Served, said: list[Any]) -> None:
    served.replies = [streamed(said)]
    result = asked(open_served(served.url, api="chat"))
    assert result.ended == "refused"
    with pytest.raises(UnansweredError, match="refused to answer"):
        check_answered(result)


@pytest.mark.parametrize(
    "behind",
    [
        [delta("content_filter")],
        [delta(refusal="I can't."), delta("stop")],
        [delta(content=" And more."), delta("refusal")],
    ],
)
def test_a_refusal_behind_the_first_sentence_is_seen(
    open_served: Make, served: Served, monkeypatch: pytest.MonkeyPatch, behind: list[Any]
) -> None:
    monkeypatch.setenv("KEY", "k")
    served.replies = [streamed([delta(content="Brenn built it. So"), *behind, "[DONE]"])]
    result = asked(open_served(served.url, api="chat", thinks="no", key_variable="KEY"))
    assert result.ended == "refused"
    with pytest.raises(UnansweredError):
        check_answered(result)


@pytest.mark.parametrize(
    ("table", "said", "usage", "counted"),
    [
        ({"thinks": "field"}, [delta(reasoning="a" * 30), delta(content="b" * 10)], {}, (15, True)),
        ({"thinks": "tags"}, [delta(content="<think>" + "a" * 30 + "</think>" + "b" * 10)], {}, (15, True)),
        ({"thinks": "inside"}, [delta(content="a" * 30 + "</think>" + "b" * 10)], {}, (15, True)),
        ({"thinks": "field"}, [delta(reasoning="a" * 30), delta(content="b")], {"reasoning_tokens": 12}, (12, False)),
        ({"thinks": "field"}, [delta(reasoning="a" * 30)], {}, (20, True)),
        ({"thinks": "no"}, [delta(content="b" * 10)], {}, (0, False)),
    ],
)
def test_thoughts_that_the_server_does_not_count_are_estimated(
    open_served: Make, served: Served, table: Any, said: list[Any], usage: Any, counted: tuple[int, bool]
) -> None:
    served.replies = [streamed(events(*said, **usage))]
    model = open_served(served.url, api="chat", **table)
    result = model.generate(GenerationRequest(CHAT, "end", 50))
    assert (result.thought_tokens, result.thought_estimated) == counted
    assert (result.generated_tokens, result.estimated) == (20, False)
    assert ("thought_estimated" in result.recorded()) == counted[1]


def test_a_completion_s_thoughts_are_estimated_too(open_served: Make, served: Served) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 20}
    written = f"{'a' * 30}</think>{'b' * 10}"
    served.replies = [streamed([piece(written), piece("", "stop"), {"choices": [], "usage": usage}, "[DONE]"])]
    model = open_served(served.url, thinks="inside")
    result = model.generate(GenerationRequest(Prompt(turns=(plain("Q: Who?\nA:"),)), "end", 50))
    assert (result.text, result.thought_tokens, result.thought_estimated) == ("b" * 10, 15, True)


def test_a_table_is_found_out_once_a_message_is_whole(open_served: Make, served: Served) -> None:
    said = [delta(content=piece) for piece in pieces(f"{THOUGHT}</think>{TEXT}")]
    served.replies = [streamed(events(*said[:4], finish="length")), streamed(events(*said))]
    model = open_served(served.url, api="chat")
    asked(model)
    with pytest.raises(BlockedError, match='thinks = "inside"'):
        asked(model)


def test_what_a_server_refuses_is_not_sent(open_served: Make, served: Served) -> None:
    served.replies = [streamed(events(delta(content=TEXT)))]
    model = open_served(
        served.url,
        api="chat",
        thinks="hidden",
        thought_tokens=1000,
        effort="low",
        limit_field="max_completion_tokens",
        omits=("temperature", "top_p", "seed", "stop", "logprobs"),
        extra={"verbosity": "low"},
    )
    asked(model)
    body = served.generations[0].body
    assert not {"temperature", "top_p", "seed", "stop", "logprobs", "max_tokens"} & body.keys()
    assert (body["max_completion_tokens"], body["reasoning_effort"], body["verbosity"]) == (1050, "low", "low")


def test_a_server_that_streams_nothing_is_read_whole(open_served: Make, served: Served) -> None:
    message = {"role": "assistant", "content": TEXT, "reasoning": THOUGHT}
    whole = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}
    served.replies = [answer(200, whole)]
    result = asked(open_served(served.url, api="chat", thinks="field", omits=("stream",)))
    assert (result.text, result.thoughts, result.prompt_tokens) == ("Brenn built it.", THOUGHT, 3)
    assert not {"stream", "stream_options"} & served.generations[0].body.keys()


@pytest.mark.parametrize("hands_back", ["none", "calls", "all"])
def test_thoughts_are_handed_back_as_they_came(open_served: Make, served: Served, hands_back: str) -> None:
    details = [
        {"type": "reasoning.text", "index": 0, "text": "Hm"},
        {"type": "reasoning.text", "index": 0, "text": ".<|x|>", "signature": "s=="},
        {"type": "reasoning.encrypted", "index": 1, "data": "AAAA"},
    ]
    call = {"index": 0, "id": "c1", "function": {"name": "search", "arguments": "{}"}}
    said = events(*(delta(reasoning_details=[each]) for each in details), delta(tool_calls=[call]), finish="tool_calls")
    served.replies = [streamed(said), streamed(events(delta(content=TEXT)))]
    model = open_served(served.url, api="chat", thinks="field", hands_back=hands_back)
    result = asked(model)
    chat = CHAT.wrote(result.text, result.calls, result.carried)
    asked(model, chat.add(tool("c1", "Found."), *([user("Go on.")] if hands_back == "all" else [])))
    message = served.generations[1].body["messages"][2]
    joined = [{"type": "reasoning.text", "index": 0, "text": "Hm.<|x|>", "signature": "s=="}, details[2]]
    assert message.get("reasoning_details") == (None if hands_back == "none" else joined)
    assert "carried" not in message


def test_halves_of_a_character_in_two_events_are_one(open_served: Make, served: Served) -> None:
    thoughts = (delta(reasoning="Hm \ud83d"), delta(reasoning="\ude00 \ud83d!"))
    said = events(*thoughts, delta(content="Brenn \ud83d"), delta(content="\ude00."))
    served.replies = [streamed(said)]
    result = asked(open_served(served.url, api="chat", thinks="field", hands_back="all"))
    assert (result.text, result.thoughts) == ("Brenn \U0001f600.", "Hm \U0001f600 \ufffd!")
    assert json.loads(result.carried) == {"reasoning": result.thoughts}


def test_events_without_data_keep_a_connection_alive(open_served: Make, served: Served) -> None:
    served.replies = [streamed(["", *events(delta(content=TEXT)), "\n\nevent: ping", "\n\nretry: 9"])]
    assert asked(open_served(served.url, api="chat")).text == "Brenn built it."


def test_what_the_server_counted_is_read_once_its_text_has_ended(open_served: Make, served: Served) -> None:
    served.replies = [streamed(events(delta(content=TEXT)))]
    result = asked(open_served(served.url, api="chat", thinks="tags"))
    assert (result.generated_tokens, result.estimated) == (20, False)


def test_thoughts_before_the_users_last_turn_are_not_handed_back_with_calls() -> None:
    chat = CHAT.add(assistant("Yes.")).handing_back("calls")
    assert chat == CHAT.add(assistant("Yes."))


def test_neither_scores_nor_going_on_in_a_turn_go_with_thoughts(open_served: Make, served: Served) -> None:
    model = open_served(served.url, api="chat", thinks="field", continues="vllm")
    with pytest.raises(BlockedError, match="thinks"):
        model.generate(GenerationRequest(CHAT, "line", 5, scored=True))
    with pytest.raises(BlockedError, match="thinks"):
        model.generate(GenerationRequest(CHAT.add(assistant("It")), "line", 5))
    assert not served.generations
