from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.probabilities import joined_scores
from cotrail.errors import StepError
from tests.cases import each_case

ENDPOINT = Endpoint(url="http://host/v1", model="m", context=100)


def lists(*tokens: str) -> dict[str, Any]:
    """Log probabilities as completions have them."""
    return {"tokens": list(tokens), "token_logprobs": [-1.0] * len(tokens), "top_logprobs": None, "text_offset": []}


def content(*tokens: str) -> dict[str, Any]:
    """Log probabilities as chats have them."""
    return {"content": [{"token": token, "logprob": -1.0, "bytes": None, "top_logprobs": []} for token in tokens]}


def texts(*events: tuple[str, Any]) -> list[str]:
    return [text for text, _ in joined_scores(ENDPOINT, events)]


@each_case("form", [lists, content])
def test_tokens_are_read_in_either_form(form: Any) -> None:
    assert joined_scores(ENDPOINT, [("It is", form("It", " is")), (".", form("."))]) == (
        ("It", -1.0),
        (" is", -1.0),
        (".", -1.0),
    )


def test_a_character_of_several_tokens_belongs_to_the_last_of_them() -> None:
    assert texts(("", lists("\ufffd")), ("é", lists("\ufffd")), ("s", lists("s"))) == ["", "é", "s"]
    assert texts(("", content(r"\xc3")), ("é s", content(r"\xa9", " s"))) == ["", "", "é s"]
    assert texts((" é", content("é"))) == [" é"]


def test_what_writes_no_text_at_the_end_is_left_out() -> None:
    assert texts(("No", lists("No")), ("", lists("</s>"))) == ["No"]
    assert texts(("No", lists("No", "</s>"))) == ["No"]
    assert texts(("", lists("</s>"))) == []
    assert texts(("", None)) == []


@given(st.text(min_size=1), st.lists(st.integers(0, 40)), st.data())
def test_joined_the_tokens_are_the_text_however_events_and_tokens_part_it(
    text: str, cuts: list[int], data: st.DataObject
) -> None:
    ends = sorted({0, *(min(cut, len(text)) for cut in cuts), len(text)})
    pieces = [text[start:end] for start, end in pairwise(ends)]
    events = [
        (piece, lists(*data.draw(st.sampled_from([[piece], list(piece), ["\ufffd", piece]])))) for piece in pieces
    ]
    assert "".join(texts(*events)) == "".join(piece for piece, _ in events)


@each_case("logprobs", [None, {}, {"content": None}, {"content": []}, lists()])
def test_a_server_that_returns_none_is_said_to(logprobs: Any) -> None:
    with pytest.raises(StepError, match=r"http://host/v1 returns no log probabilities.*vLLM and llama.cpp.*without = "):
        joined_scores(ENDPOINT, [("It", lists("It")), (" is", logprobs)])


@each_case("logprobs", [3, {"content": 3}, {"tokens": ["a"], "token_logprobs": []}, lists("a") | {"tokens": [1]}])
def test_what_has_another_form_is_said_to(logprobs: Any) -> None:
    with pytest.raises(StepError, match="OpenAI's form"):
        joined_scores(ENDPOINT, [("a", logprobs)])
