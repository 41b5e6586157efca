"""Models and servers that misbehave: each ends in a clear record, in which nothing is lost or counted twice."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cotrail.core.actions.generate import check_answered
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel
from cotrail.core.prompts import Prompt, system, user
from cotrail.core.results import Generated
from cotrail.errors import BusyError, UnansweredError, UnrecordableError
from tests.integration.served import Reply, Served, answer, streamed

Make = Callable[..., LanguageModel]

CHAT = Prompt(turns=(system("Answer."), user("Who built it?")))
TEXT = "Brenn built it."
USAGE = {"prompt_tokens": 9, "completion_tokens": 20, "completion_tokens_details": {"reasoning_tokens": 12}}


def delta(finish: str | None = None, /, **fields: object) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def said(*deltas: dict[str, Any], finish: str = "stop") -> Reply:
    return streamed([*deltas, delta(finish), {"choices": [], "usage": USAGE}, "[DONE]"])


def asked(model: LanguageModel) -> Generated:
    return model.generate(GenerationRequest(CHAT, "end", 50))


def pieces(text: str) -> list[dict[str, Any]]:
    return [delta(content=text[place : place + 3]) for place in range(0, len(text), 3)]


# Models


@pytest.mark.parametrize(
    ("thinks", "written", "text", "thoughts"),
    [
        ("tags", f"<think>\n\n</think>\n\n{TEXT}", TEXT, ""),
        ("tags", f"<think>One <think>two</think> {TEXT}", TEXT, "One <think>two"),
        ("tags", f"<think>One.</think><think>Two.</think>{TEXT}", TEXT, "One.\n\nTwo."),
        ("tags", "The page says <think> opens a thought.", "The page says <think> opens a thought.", ""),
        ("tags", f"<think>Hm.</think>{TEXT} It ends in </think>.", f"{TEXT} It ends in </think>.", "Hm."),
        ("tags", f"{TEXT} <think>Or not?</think>Yes.", f"{TEXT} Yes.", "Or not?"),
        ("inside", f"Hm, <think> is a tag.</think>{TEXT}", TEXT, "Hm, <think> is a tag."),
        ("no", "The page says </think> closes one.", "The page says </think> closes one.", ""),
        (None, "The page says <think> opens a thought.", "The page says <think> opens a thought.", ""),
    ],
)
def test_marks_in_odd_places_leave_the_text_whole(
    open_served: Make, served: Served, thinks: str | None, written: str, text: str, thoughts: str
) -> None:
    served.replies = [said(*pieces(written))]
    table = {"thinks": thinks} if thinks else {}
    result = asked(open_served(served.url, api="chat", **table))
    assert (result.text, result.thoughts, result.ended) == (text, thoughts, "end")
    assert (result.prompt_tokens, result.generated_tokens, result.thought_tokens) == (9, 20, 12)
    assert len(served.generations) == 1


def test_thoughts_that_come_behind_the_text_are_none_of_it(open_served: Make, served: Served) -> None:
    served.replies = [said(delta(content="Brenn "), delta(reasoning="Sure?"), delta(content="built it."))]
    result = asked(open_served(served.url, api="chat", thinks="field"))
    assert (result.text, result.thoughts, result.raw) == (TEXT, "Sure?", TEXT)
    assert (result.generated_tokens, result.thought_tokens) == (20, 12)


@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize(
    ("table", "deltas"),
    [
        ({"thinks": "tags"}, [delta(content="<think>Hm, and so "), delta(content="on")]),
        ({"thinks": "inside"}, [delta(content="Hm, and so on")]),
        ({"thinks": "tags"}, [delta(content="<think></think>"), delta(content="<think>Hm, and")]),
        ({"thinks": "field"}, [delta(reasoning_content="Hm, and so on")]),
    ],
    ids=["no closing", "inside", "a second one", "a field"],
)
def test_a_thought_without_an_end_is_recorded_and_no_answer(
    open_served: Make, served: Served, table: dict[str, Any], deltas: list[dict[str, Any]], finish: str
) -> None:
    served.replies = [said(*deltas, finish=finish)]
    result = asked(open_served(served.url, api="chat", **table))
    assert (result.text, result.ended, result.generated_tokens) == ("", "thoughts", 20)
    assert result.thoughts.startswith("Hm, and")
    with pytest.raises(UnansweredError):
        check_answered(result)


@pytest.mark.parametrize("kind", ["reasoning", "content"])
def test_a_model_that_thinks_for_ever_is_cut_off(
    open_served: Make, served: Served, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("cotrail.engines.language_models.served.stream.MOST_CHARACTERS", 50_000)

    def endless() -> Iterator[str]:
        yield json.dumps(delta(content="<think>" if kind == "content" else ""))
        while True:
            yield json.dumps(delta(**{kind: "and so on " * 100}))

    served.replies = [streamed(endless())]
    with pytest.raises(UnrecordableError, match="more than 50,000 characters"):
        asked(open_served(served.url, api="chat", thinks="field" if kind == "reasoning" else "tags"))
    assert served.cut.wait(60)
    assert len(served.generations) == 1


# Servers


WHOLE = {"choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}], "usage": USAGE}


@pytest.fixture
def hosted(open_served: Make, served: Served) -> LanguageModel:
    return open_served(served.url, api="chat", thinks="no", account="acme", omits=["stream"])


def test_limits_that_change_with_each_response_are_followed(hosted: LanguageModel, served: Served) -> None:
    limits = ["6000", "-7", "nan", "0.0001", "60000", "1e300", "many", "30000", "0"]
    served.replies = [answer(200, WHOLE, {"x-ratelimit-limit-requests": limit}) for limit in limits]
    assert {asked(hosted).text for _ in range(2 * len(limits))} == {TEXT}
    assert len(served.generations) == 2 * len(limits)


@pytest.mark.parametrize("wrong", ["-4", "0", "soon", "nan", "Wed, 21 Oct 2015 07:28:00 GMT", ""])
def test_a_pause_that_makes_no_sense_is_one_that_grows(hosted: LanguageModel, served: Served, wrong: str) -> None:
    refusal = answer(429, {"error": {"message": "slow"}}, {"Retry-After": wrong})
    served.replies = [refusal, answer(200, WHOLE)]
    result = asked(hosted)
    assert (result.text, result.generated_tokens) == (TEXT, 20)
    assert len(served.generations) == 2


def test_a_pause_of_decades_is_an_hour(hosted: LanguageModel, served: Served) -> None:
    served.replies = [answer(429, {"error": {"message": "slow"}}, {"Retry-After": "1000000000"})]
    with pytest.raises(BusyError) as caught:
        asked(hosted)
    assert caught.value.seconds == 3600
    assert len(served.generations) == 1
