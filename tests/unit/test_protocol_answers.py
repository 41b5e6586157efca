"""Requests and answers of Anthropic's messages, OpenAI's responses and Gemini's contents, without a server."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.calls import Call
from cotrail.core.generation import Sampling
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Asked, Prompt, assistant, system, user
from cotrail.engines.language_models.catalogue import find_model
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.event_loop import Calls, Function
from cotrail.engines.language_models.served.protocols.delta import AnswerReader, Delta, Refused
from cotrail.engines.language_models.served.protocols.wire_protocols import PROTOCOLS
from cotrail.engines.language_models.served.request import Order
from cotrail.errors import InputError, StepError, TransientStepError
from tests.cases import each_case
from tests.integration.provider_answers import DIALECTS, Dialect

WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)
CACHED = {"type": "ephemeral"}
GREEDY = Sampling(temperature=0.0)


class Sum(Struct):
    """What all events of an answer say together."""

    text: str
    thought: str
    calls: tuple[Call, ...]
    counts: Any
    finish: Any
    served_by: str
    carried: dict[str, Any]


def summed(reader: AnswerReader, deltas: Sequence[Delta]) -> Sum:
    calls = Calls()
    for call in (call for delta in deltas for call in delta.calls):
        calls.take(call)
    return Sum(
        text="".join(delta.text or "" for delta in deltas),
        thought="".join(delta.thought for delta in deltas),
        calls=tuple(replace(call, arguments=json.dumps(json.loads(call.arguments))) for call in calls.whole()),
        counts=[delta.counts for delta in deltas if delta.counts][-1],
        finish=[delta.finish for delta in deltas if delta.finish][-1],
        served_by=next(delta.served_by for delta in deltas if delta.served_by),
        carried=reader.carried,
    )


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@given(
    thought=WORDS | st.just(""),
    text=WORDS,
    queries=st.lists(WORDS, max_size=3),
    end=st.sampled_from(["end", "length", "refused"]),
    size=st.integers(1, 80),
)
def test_however_an_answer_is_cut_into_events_it_says_the_same(
    dialect: Dialect, thought: str, text: str, queries: list[str], end: str, size: int
) -> None:
    said = {"thought": thought, "text": text, "end": end}
    calls = tuple(Call(name="search", arguments=json.dumps({"query": query})) for query in queries)
    streamed, whole = PROTOCOLS[dialect.api].reader(), PROTOCOLS[dialect.api].reader()
    events = dialect.streamed(**said, calls=calls, size=size)
    deltas = [streamed.read(json.dumps(event)) for event in events]
    assert summed(streamed, deltas) == summed(whole, [whole.whole(dialect.whole(**said, calls=calls))])


def test_summaries_are_told_apart_by_empty_lines_between_them() -> None:
    reader = PROTOCOLS["responses"].reader()
    events: list[dict[str, Any]] = []
    for text in ("A bridge.", "Brenn."):
        events.append({"type": "response.reasoning_summary_part.added"})
        events.append({"type": "response.reasoning_summary_text.delta", "delta": text})
    assert "".join(reader.read(json.dumps(event)).thought for event in events) == "A bridge.\n\nBrenn."


@each_case("reason", ["OTHER", "FINISH_REASON_UNSPECIFIED", "MALFORMED_FUNCTION_CALL"])
def test_a_text_that_ended_for_no_known_reason_is_tried_again(reason: str) -> None:
    answer = {"candidates": [{"content": {"parts": [{"text": "It"}]}, "finishReason": reason}]}
    with pytest.raises(TransientStepError, match=reason):
        PROTOCOLS["gemini"].reader().read(json.dumps(answer))


UNKNOWN: dict[str, Any] = {"type": "later", "delta": [1], "index": "a", "item": 1, "response": "x", "message": {}}


@each_case("api", ["anthropic", "responses"])
def test_events_of_unknown_types_say_nothing(api: str) -> None:
    reader = PROTOCOLS[api].reader()  # type: ignore[index]
    assert reader.read(json.dumps(UNKNOWN)) == Delta()
    later = {"type": "content_block_delta", "delta": {"type": "later", "text": 5}}
    assert reader.read(json.dumps(later)) == Delta()


def test_what_gemini_leaves_empty_may_be_null() -> None:
    part = {"text": "It", "thought": None, "thoughtSignature": None, "functionCall": None}
    call = {"functionCall": {"name": "search", "args": None, "id": None}, "text": None}
    reader = PROTOCOLS["gemini"].reader()
    said = [
        {"candidates": [{"content": {"parts": [part, call]}, "finishReason": None}], "modelVersion": None},
        {"candidates": [{"content": None, "finishReason": "STOP"}], "usageMetadata": None},
    ]
    first, last = (reader.read(json.dumps(each)) for each in said)
    assert (first.text, [piece.function for piece in first.calls]) == ("It", [Function("search", "{}")])
    assert last.finish == "done"


def test_comments_before_an_answer_are_no_part_of_it_and_go_back_whole() -> None:
    comment = {"type": "message", "phase": "commentary", "content": [{"type": "output_text", "text": "I look."}]}
    answer = {"type": "message", "phase": "final_answer", "content": [{"type": "output_text", "text": "Brenn."}]}
    response = {"model": "m-2026", "status": "completed", "output": [comment, answer], "usage": {"output_tokens": 3}}
    whole, streamed = PROTOCOLS["responses"].reader(), PROTOCOLS["responses"].reader()
    events: list[dict[str, Any]] = []
    for index, item in enumerate((comment, answer)):
        text = item["content"][0]["text"]  # type: ignore[index]
        events += [
            {"type": "response.output_item.added", "output_index": index, "item": item | {"content": []}},
            {"type": "response.output_text.delta", "output_index": index, "delta": text},
            {"type": "response.output_item.done", "output_index": index, "item": item},
        ]
    events.append({"type": "response.completed", "response": response})
    read = summed(streamed, [streamed.read(json.dumps(event)) for event in events])
    assert read == summed(whole, [whole.whole(response)])
    assert (read.text, read.thought, read.carried) == ("Brenn.", "I look.", {"items": [comment]})


def chunk(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": fields, "finish_reason": finish}]}


@each_case("reason", ["error", "abort", "insufficient_system_resource"])
def test_a_text_that_a_server_broke_off_is_tried_again(reason: str) -> None:
    with pytest.raises(TransientStepError, match=reason):
        PROTOCOLS["chat"].reader().read(json.dumps(chunk(reason, content="It")))


@each_case(
    ("reason", "finish"),
    [("", None), ("model_length", "length"), ("max_tokens", "length"), ("content_filter: SAFETY", "refused")],
)
def test_servers_have_words_of_their_own_for_why_a_text_ended(reason: str, finish: str | None) -> None:
    delta = PROTOCOLS["chat"].reader().read(json.dumps(chunk(reason, content="It")))
    assert (delta.finish, delta.ended) == (finish, finish is not None)


def test_an_error_of_vllms_within_a_stream_is_one() -> None:
    with pytest.raises(Refused, match="no"):
        PROTOCOLS["chat"].reader().read(json.dumps({"object": "error", "message": "no", "code": 400}))


def carried(*chunks: dict[str, Any]) -> dict[str, Any]:
    reader = PROTOCOLS["chat"].reader()
    for each in chunks:
        reader.read(json.dumps(each))
    return reader.carried


def test_signatures_of_chunks_go_back() -> None:
    def thinking(*texts: str, **more: Any) -> dict[str, Any]:
        return {"type": "thinking", "thinking": [{"type": "text", "text": text} for text in texts], **more}

    reference = {"type": "reference", "reference_ids": [1]}
    pieces = [thinking("Hm, "), thinking("so."), {"type": "thinking", "thinking": [reference]}]
    signed = [thinking(signature="s==", closed=True), {"type": "text", "text": "Brenn."}]
    said = carried(
        *(chunk(content=[piece]) for piece in pieces), chunk(content=signed), chunk(content=[thinking("And")])
    )
    first = thinking("Hm, so.", signature="s==", closed=True)
    first["thinking"].append(reference)
    assert json.loads(json.dumps(said)) == {"content": [first, thinking("And")]}


def test_details_that_are_whole_go_back_as_they_came() -> None:
    details: list[dict[str, Any]] = [
        {"type": "reasoning.text", "text": "One.", "signature": "a"},
        {"type": "reasoning.text", "text": "Two.", "signature": None},
        {"type": "reasoning.encrypted", "data": "A"},
        {"type": "reasoning.encrypted", "data": "B"},
    ]
    reader = PROTOCOLS["chat"].reader()
    reader.whole({"choices": [{"message": {"content": "It", "reasoning_details": details}, "finish_reason": "stop"}]})
    assert reader.carried == {"reasoning_details": details}
    streamed = [{name: value for name, value in each.items() if value} for each in details]
    assert carried(*(chunk(reasoning_details=[each]) for each in details)) == {"reasoning_details": streamed}


def body(prompt: Prompt, max_tokens: int = 50, sampling: Sampling = GREEDY, **table: Any) -> dict[str, Any]:
    endpoint = Endpoint(url="http://host/v1", model="m", context=9000, api="anthropic", **table)
    request = GenerationRequest(prompt, "end", max_tokens, sampling)
    return PROTOCOLS["anthropic"].body(Order(endpoint=endpoint, dialect="openai", prompt=prompt, request=request))


CHAT = Prompt(turns=(user(Asked("Who built it?")),))


def marked(content: Any) -> list[str]:
    """The texts of the blocks that are marked for the cache."""
    return [block["text"] for block in content if block.get("cache_control") == CACHED]


def test_of_many_turns_that_all_questions_share_the_last_is_marked() -> None:
    shots = [turn for number in range(4) for turn in (user(f"Who is {number}? "), assistant(f"It is {number}. "))]
    asked = body(Prompt(turns=(system("Answer."), *shots, user(Asked("Who built it?")))))
    assert marked(asked["system"]) == ["Answer."]
    messages = asked["messages"]
    assert [text for message in messages for text in marked(message["content"])] == ["It is 3.", "Who built it?"]


def test_a_system_turn_is_marked_up_to_the_question() -> None:
    asked = body(Prompt(turns=(system("Answer: ", Asked("Who built it?")), user("Go on."))))
    assert marked(asked["system"]) == ["Answer: "]
    assert [block["text"] for block in asked["system"]] == ["Answer: ", "Who built it?"]


def test_a_budget_leaves_room_for_text_or_the_step_fails() -> None:
    table: dict[str, Any] = {"thinks": "field", "thought_tokens": 2000}
    assert body(CHAT, 2050, **table)["thinking"]["budget_tokens"] == 2000
    assert body(CHAT, 1500, **table)["thinking"]["budget_tokens"] == 1499
    with pytest.raises(StepError, match="longer context"):
        body(CHAT, 1024, **table)


def test_a_budget_that_the_api_refuses_is_refused_in_the_table(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    table = '[models.c]\nengine = "anthropic"\nmodel = "c"\ncontext = 9000\nthinks = "field"\nthought_tokens = 500\n'
    path.write_text(table)
    with pytest.raises(InputError, match="1024 at least"):
        find_model(path, "c")
    path.write_text(table + 'effort = "low"\n')
    assert find_model(path, "c").engine.served


@each_case(
    ("temperature", "top_p", "sent"),
    [
        (0.0, 1.0, {"temperature": 0.0}),
        (1.0, 1.0, {"temperature": 1.0}),
        (1.0, 0.9, {"top_p": 0.9}),
        (0.5, 0.9, {"temperature": 0.5, "top_p": 0.9}),
    ],
)
def test_no_setting_of_the_sampling_is_dropped_unsaid(temperature: float, top_p: float, sent: dict[str, float]) -> None:
    asked = body(CHAT, sampling=Sampling(temperature=temperature, top_p=top_p))
    assert {name: asked[name] for name in ("temperature", "top_p") if name in asked} == sent


def test_further_fields_are_added_to_those_of_the_same_object() -> None:
    asked = body(CHAT, thinks="field", effort="low", extra={"output_config": {"verbosity": "low"}, "top_k": 5})
    assert asked["output_config"] == {"effort": "low", "verbosity": "low"}
    assert asked["top_k"] == 5
    assert body(CHAT, thinks="field", effort="low")["output_config"] == {"effort": "low"}
