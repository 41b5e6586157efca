import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotrail.common.sentence_boundaries import first_sentence
from cotrail.core.generation import Until
from cotrail.engines.language_models.openai.stream import END, OpenAIStream, Refused
from cotrail.engines.language_models.result import TokenCounts
from cotrail.errors import TransientStepError


def event(text: str | None = None, finish: str | None = None, **more: object) -> str:
    return json.dumps({"choices": [{"text": text, "finish_reason": finish}], **more})


def read(until: Until, *events: str) -> OpenAIStream:
    stream = OpenAIStream(until)
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


@pytest.mark.parametrize("events", [[event("a", "length")], [event("a"), END], [event("a\n"), event("b")]])
def test_an_end_is_an_end_however_it_is_said(events: list[str]) -> None:
    assert read("line", *events).kept() == "a"


@pytest.mark.parametrize("events", [[], [event("a")], [json.dumps({"choices": None})]])
def test_half_an_answer_is_none(events: list[str]) -> None:
    with pytest.raises(TransientStepError, match="broke off"):
        read("line", *events)


@pytest.mark.parametrize("data", ["", "{", "[]", "null", '{"choices": 3}', '{"choices": [{"text": 3}]}'])
def test_what_is_not_the_protocol_is_said_to_be_so(data: str) -> None:
    with pytest.raises(TransientStepError, match="OpenAI's protocol"):
        read("line", data)


@pytest.mark.parametrize(
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
