import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from cotrail.common.sentence_boundaries import first_sentence
from cotrail.core.calls import Call
from cotrail.core.generation import Until
from cotrail.engines.language_models.served.protocols.chat import END, ChunkReader
from cotrail.engines.language_models.served.protocols.delta import Refused
from cotrail.engines.language_models.served.stream import ServerStream
from cotrail.engines.language_models.token_counts import TokenCounts
from cotrail.errors import TransientStepError, UnrecordableError
from tests.cases import each_case


def event(text: str | None = None, finish: str | None = None, stop: Any = UNSET, **more: object) -> str:
    said = {} if stop is UNSET else {"stop_reason": stop}
    return json.dumps({"choices": [{"text": text, "finish_reason": finish, **said}], **more})


def read(until: Until, *events: str) -> ServerStream:
    stream = ServerStream(ChunkReader(), until)
    for each in events:
        if stream.take(each):
            break
    stream.check()
    return stream


@settings(deadline=None)
@given(st.text(), st.lists(st.integers(0, 60)))
def test_however_a_text_is_cut_into_pieces_its_first_line_is_kept(text: str, cuts: list[int]) -> None:
    ends = sorted({0, *cuts, len(text)})
    pieces = [text[start:end] for start, end in pairwise(ends)]
    stream = read("line", *map(event, pieces), event(finish="stop"))
    stored = "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)
    assert stored.startswith(stream.text)
    assert stream.kept() == stored.split("\n", 1)[0].strip()


@settings(deadline=None)
@given(st.lists(st.sampled_from(["It is", ". ", "So ", "Dr", "the end.", "\n", "1."]), max_size=12))
def test_a_sentence_is_kept_as_soon_as_it_is_whole(pieces: list[str]) -> None:
    stream = read("sentence", *map(event, pieces), END)
    assert "".join(pieces).startswith(stream.text)
    assert stream.kept() == first_sentence(stream.text)
    assert stream.pieces <= len(pieces)


def test_tokens_are_counted_by_whatever_the_server_says_last() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    timings = {"cache_n": 4, "prompt_n": 6, "predicted_n": 2, "predicted_ms": 1.5}
    assert read("line", event("a", "stop")).counts is None
    assert read("line", event("a", "stop", timings=timings)).counts == TokenCounts(10, 4, 2)
    assert read("line", event("a", "stop", timings=timings), event(usage=usage)).counts == TokenCounts(9, 0, 3)
    details = usage | {"prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": None}}
    assert read("line", event("a", "stop", usage=details), event(usage=None)).counts == TokenCounts(9, 8, 3)
    assert read("line", event("a", "stop", usage=usage | {"prompt_tokens_details": None})).counts == TokenCounts(
        9, 0, 3
    )


def ended(*events: str, until: Until = "line", **more: Any) -> tuple[str, str, str]:
    """The text that is kept, why it ended, and before which stop string."""
    stream = ServerStream(ChunkReader(), until, **more)
    for each in events:
        if stream.take(each):
            break
    return (stream.kept(), *stream.ending())


def test_a_text_says_why_it_ended() -> None:
    assert ended(event("It is.\nQ:")) == ("It is.", "until", "")
    assert ended(event("It is."), event("", "length")) == ("It is.", "length", "")
    assert ended(event("It is."), event("", "stop")) == ("It is.", "end", "")
    assert ended(event("It is."), END) == ("It is.", "end", "")
    assert ended(event("It is. And", "length"), until="sentence") == ("It is.", "length", "")
    assert ended(event("It is. And so"), event(" on", "length"), until="sentence") == ("It is.", "until", "")


def test_what_a_server_was_told_to_stop_at_is_taken_to_have_ended_the_text_unless_it_says_otherwise() -> None:
    assert ended(event("It is."), event("", "stop"), knows_stop=True) == ("It is.", "until", "")
    assert ended(event("It is."), event("", "stop", stop="\n"), knows_stop=True) == ("It is.", "until", "")
    for reason in (None, 128009):
        assert ended(event("It is."), event("", "stop", stop=reason), knows_stop=True) == ("It is.", "end", "")
    assert ended(event("It is."), event("", "length", stop=None), knows_stop=True) == ("It is.", "length", "")


@settings(deadline=None)
@given(st.lists(st.integers(0, 60)), st.booleans())
def test_a_stop_string_is_met_over_the_borders_of_pieces_and_the_text_before_it_is_verbatim(
    cuts: list[int],
    opens: bool,  # noqa: FBT001
) -> None:
    text = " \nIt is <search> ink </search> and </s"
    ends = sorted({0, *(min(cut, len(text)) for cut in cuts), len(text)})
    pieces = [event(text[start:end]) for start, end in pairwise(ends)]
    assert ended(*pieces, event("", "stop"), until="stop", stop=("</search>", "</end>"), opens=opens) == (
        " \nIt is <search> ink ",
        "stop",
        "</search>",
    )
    assert ended(*pieces, event("", "stop"), until="stop", stop=("</end>",), opens=opens) == (text, "end", "")


def test_of_what_is_asked_for_the_first_ends_the_text() -> None:
    assert ended(event("It is.\nSTOP"), stop=("STOP",)) == ("It is.", "until", "")
    assert ended(event("It STOP is.\n"), stop=("STOP",)) == ("It", "stop", "STOP")


ECHO = "It is"


@each_case(
    ("pieces", "text"),
    [
        (["It", " is", " ink"], " ink"),
        (["It is ink"], " ink"),
        ([" ink"], " ink"),
        (["It was", " ink"], "It was ink"),
        (["It", ""], "It"),
    ],
)
def test_what_a_server_repeats_before_it_goes_on_is_no_part_of_the_text(pieces: list[str], text: str) -> None:
    stream = ServerStream(ChunkReader(), "stop", echo=ECHO)
    for piece in pieces[:-1]:
        stream.take(event(piece))
    stream.take(event(pieces[-1], "stop"))
    assert stream.text == text


def test_log_probabilities_of_reasoning_beside_the_text_are_none_of_the_texts() -> None:
    stream = ServerStream(ChunkReader(), "stop", opens=True)
    for delta in ({"reasoning_content": "Hm."}, {"content": None}, {"content": ""}, {"content": "It is."}):
        stream.take(json.dumps({"choices": [{"delta": delta, "logprobs": {"content": [delta]}}]}))
    assert stream.events == [("", {"content": [{"content": ""}]}), ("It is.", {"content": [{"content": "It is."}]})]


def called(*pieces: dict[str, Any], finish: str = "tool_calls", content: str = "") -> ServerStream:
    stream = ServerStream(ChunkReader(), "end", opens=True)
    for piece in pieces:
        stream.take(json.dumps({"choices": [{"delta": {"content": content, "tool_calls": [piece]}}]}))
    stream.take(json.dumps({"choices": [{"delta": {}, "finish_reason": finish}]}))
    return stream


def test_calls_of_tools_are_put_together_from_their_pieces() -> None:
    first = {"index": 0, "id": "call_a", "type": "function", "function": {"name": "find", "arguments": ""}}
    pieces = [
        first,
        {"index": 0, "function": {"arguments": '{"q": '}},
        {"index": 1, "id": "call_b", "function": {"name": "open", "arguments": "{}"}},
        {"index": 0, "function": {"arguments": '"ink"}'}},
    ]
    stream = called(*pieces)
    assert stream.ending() == ("calls", "")
    assert stream.calls == (
        Call(name="find", arguments='{"q": "ink"}', id="call_a"),
        Call(name="open", arguments="{}", id="call_b"),
    )
    assert called(first, finish="stop").ending() == ("calls", "")
    cut_off = called(first, finish="length")
    assert (cut_off.ending(), cut_off.calls) == (("length", ""), ())


def test_calls_without_numbers_are_told_apart_by_their_ids() -> None:
    whole = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in ("a", "b")]
    rest = {"function": {"arguments": " "}}
    assert [(call.id, call.arguments) for call in called(*whole, rest).calls] == [("a", "{}"), ("b", "{} ")]


def test_calls_without_end_are_too_long_like_texts_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotrail.engines.language_models.served.stream.MOST_CHARACTERS", 100)
    with pytest.raises(UnrecordableError, match="wrote more than 100 characters"):
        called(*[{"index": 0, "function": {"arguments": "x" * 60}}] * 2)


@each_case("events", [[event("a", "length")], [event("a"), END], [event("a\n"), event("b")]])
def test_an_end_is_an_end_however_it_is_said(events: list[str]) -> None:
    assert read("line", *events).kept() == "a"


@each_case("events", [[], [event("a")], [json.dumps({"choices": None})]])
def test_half_an_answer_is_none(events: list[str]) -> None:
    with pytest.raises(TransientStepError, match="broke off"):
        read("line", *events)


@each_case("data", ["", "{", "[]", "null", '{"choices": 3}', '{"choices": [{"text": 3}]}'])
def test_what_is_not_the_protocol_is_said_to_be_so(data: str) -> None:
    with pytest.raises(TransientStepError, match="isn't in the form of its API"):
        read("line", data)


@each_case(
    ("error", "status"),
    [
        ("no memory", 500),
        ({"message": "no memory"}, 500),
        ({"message": "no memory", "code": "overloaded"}, 500),
        ({"message": "no memory", "code": 503}, 503),
    ],
)
def test_an_error_in_the_stream_has_the_status_that_its_code_says(error: object, status: int) -> None:
    with pytest.raises(Refused, match="no memory") as caught:
        read("line", event("a"), json.dumps({"error": error}))
    assert caught.value.status == status
