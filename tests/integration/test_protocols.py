"""Anthropic's messages, OpenAI's responses and Gemini's contents: the same results as of a chat."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from cotrail.core.actions.generate import check_answered
from cotrail.core.calls import Call, Tool, numbered
from cotrail.core.demonstrations import Demonstration, Demonstrations
from cotrail.core.generation import Until
from cotrail.core.ports.batches import BatchAnswer
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel
from cotrail.core.prompts import Asked, Demonstrated, Prompt, plain, system, tool, user
from cotrail.core.results import Generated
from cotrail.engines.language_models.catalogue import catalogue
from cotrail.errors import CotrailError, StepError, TransientStepError, UnansweredError, UnavailableError
from tests.integration.provider_answers import DIALECTS, Dialect, Event
from tests.integration.served import Served, answer, streamed

Make = Callable[..., LanguageModel]

SEARCH = Tool(name="search", description="Finds pages.", parameters='{"type":"object"}')
CHAT = Prompt(turns=(system("Answer."), user("Who built it?")))
TALK = Prompt(turns=CHAT.turns, tools=(SEARCH,))
THOUGHT = "A bridge. Brenn, I think."
TEXT = "Brenn built it. And more."
CALLS = (Call(name="search", arguments='{"query":"Vell"}'), Call(name="search", arguments='{"query":"Brenn"}'))


@pytest.fixture(params=list(DIALECTS))
def dialect(request: pytest.FixtureRequest) -> Dialect:
    return DIALECTS[request.param]


@pytest.fixture
def opened(open_served: Make, served: Served, dialect: Dialect) -> Make:
    def make(**table: Any) -> LanguageModel:
        url = served.url.removesuffix("/v1") + dialect.version
        return open_served(url, api=dialect.api, **({"thinks": "field", "thought_tokens": 2000} | table))

    return make


def asked(model: LanguageModel, prompt: Prompt = CHAT, until: Until = "sentence", **more: Any) -> Generated:
    return model.generate(GenerationRequest(prompt, until, 50, **more))


def content(body: Event) -> str:
    """All that a request says."""
    return json.dumps(body)


@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "whole"])
def test_thoughts_text_and_counts_are_told_apart(
    opened: Make, served: Served, dialect: Dialect, *, whole: bool
) -> None:
    said = {"thought": THOUGHT, "text": TEXT}
    served.replies = [answer(200, dialect.whole(**said)) if whole else streamed(dialect.streamed(**said))]
    result = asked(opened(omits=("stream",) if whole else ()))
    assert (result.text, result.thoughts, result.thoughts_are) == ("Brenn built it.", THOUGHT, "summary")
    assert (result.prompt_tokens, result.cached_prompt_tokens, result.generated_tokens) == (9, 3, 20)
    assert (result.thought_tokens, result.served_by, result.estimated) == (12, "m-2026", False)
    assert result.cache_written_tokens == (0 if dialect.api == "gemini" else 1)


def test_without_thoughts_the_text_is_the_same(opened: Make, served: Served, dialect: Dialect) -> None:
    served.replies = [streamed(dialect.streamed(text=TEXT))]
    result = asked(opened(thinks="no", thought_tokens=0))
    assert (result.text, result.thoughts, result.ended) == ("Brenn built it.", "", "until")
    body = served.generations[0].body
    assert "thinking" not in body
    assert "thinkingConfig" not in body.get("generationConfig", {})
    assert 'temperature": 0' in content(body)


@pytest.mark.parametrize(
    ("said", "ended"),
    [
        ({"thought": THOUGHT}, "thoughts"),
        ({"thought": THOUGHT, "end": "length"}, "thoughts"),
        ({"end": "length"}, "thoughts"),
        ({"text": "I can't help with that.", "end": "refused"}, "refused"),
        ({"text": "Brenn", "end": "length"}, "length"),
        ({"text": "Brenn"}, "end"),
    ],
)
def test_why_a_text_ended(opened: Make, served: Served, dialect: Dialect, said: dict[str, str], ended: str) -> None:
    served.replies = [streamed(dialect.streamed(**said))]
    result = asked(opened())
    assert result.ended == ended
    if ended in ("thoughts", "refused"):
        with pytest.raises(UnansweredError):
            check_answered(result)


def test_thoughts_go_back_in_a_loop_of_calls_as_they_came(opened: Make, served: Served, dialect: Dialect) -> None:
    served.replies = [
        streamed(dialect.streamed(thought=THOUGHT, text="I look.", calls=CALLS)),
        streamed(dialect.streamed(text=TEXT)),
    ]
    result = asked(opened(), TALK, "end")
    assert [(call.name, json.loads(call.arguments)["query"]) for call in result.calls] == [
        ("search", "Vell"),
        ("search", "Brenn"),
    ]
    # From the record, by a process that has asked for nothing yet.
    recorded = Generated(**json.loads(json.dumps(result.recorded())) | {"calls": numbered(result.calls, 0)})
    later = TALK.wrote(recorded.text, recorded.calls, recorded.carried).add(
        tool("0.0", "The sea."), tool("0.1", "Brenn.")
    )
    assert asked(opened(), later).text == "Brenn built it."
    body = served.generations[1].body
    assert EXPECTED[dialect.api](body) == HANDED_BACK[dialect.api]
    assert "carried" not in content(body)


EXPECTED: dict[str, Callable[[Event], Any]] = {
    "anthropic": lambda body: body["messages"][1:],
    "responses": lambda body: body["input"][2:],
    "gemini": lambda body: body["contents"][1:],
}
HANDED_BACK: dict[str, Any] = {
    "anthropic": [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": THOUGHT, "signature": "s=="},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_0", "name": "search", "input": {"query": "Vell"}},
                {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"query": "Brenn"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_0", "content": "The sea."},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": "Brenn.",
                    "cache_control": {"type": "ephemeral"},
                },
            ],
        },
    ],
    "responses": [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": THOUGHT}],
            "encrypted_content": "gAAA==",
        },
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "c0", "name": "search", "arguments": '{"query":"Vell"}'},
        {"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"query":"Brenn"}'},
        {"type": "function_call_output", "call_id": "c0", "output": "The sea."},
        {"type": "function_call_output", "call_id": "c1", "output": "Brenn."},
    ],
    "gemini": [
        {
            "role": "model",
            "parts": [
                {"text": "I look."},
                {"functionCall": {"name": "search", "args": {"query": "Vell"}}, "thoughtSignature": "c2ln"},
                {"functionCall": {"name": "search", "args": {"query": "Brenn"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "search", "response": {"result": "The sea."}}},
                {"functionResponse": {"name": "search", "response": {"result": "Brenn."}}},
            ],
        },
    ],
}


def test_no_thought_is_in_a_later_prompt_of_plain_turns(opened: Make, served: Served, dialect: Dialect) -> None:
    served.replies = [streamed(dialect.streamed(thought=THOUGHT, text=TEXT)), streamed(dialect.streamed(text=TEXT))]
    model = opened()
    result = asked(model)
    asked(model, CHAT.wrote(result.text, result.calls, result.carried).add(user("Go on.")))
    assert THOUGHT not in content(served.generations[1].body)
    assert "Brenn built it." in content(served.generations[1].body)


LIO = Demonstration(id="d", paragraphs=(), question="Who?", answer="Lio.")
SHOTS = Demonstrated(demonstrations=Demonstrations(items=(LIO,)))


def test_what_all_questions_share_is_marked_for_the_cache(opened: Make, served: Served, dialect: Dialect) -> None:
    served.replies = [streamed(dialect.streamed(text=TEXT))]
    model = opened()
    for question in ("Who built it?", "Who lives there?"):
        asked(model, Prompt(turns=(plain(SHOTS, Asked(question)),)))
    first, second = (asked.body for asked in served.generations)
    if dialect.api == "anthropic":
        (shared, question), (again, _) = first["messages"][0]["content"], second["messages"][0]["content"]
        assert shared == again
        assert shared["cache_control"] == {"type": "ephemeral"}
        assert question == {"type": "text", "text": "Who built it?"}
    if dialect.api == "responses":
        assert first["prompt_cache_key"] == second["prompt_cache_key"]


@pytest.mark.parametrize(("name", "marks"), [("gpt-5.6-sol", True), ("gpt-6-luna", True), ("gpt-5.1", False)])
def test_openai_s_newer_models_cache_up_to_a_mark(open_served: Make, served: Served, name: str, *, marks: bool) -> None:
    served.replies = [streamed(DIALECTS["responses"].streamed(text=TEXT))]
    model = open_served(served.url, api="responses", thinks="hidden", thought_tokens=9, model=name)
    for question in ("Who built it?", "Who lives there?"):
        asked(model, Prompt(turns=(plain(SHOTS, Asked(question)),)))
    asked(model, CHAT)
    first, second, short = (each.body["input"] for each in served.generations)
    if not marks:
        assert isinstance(first[0]["content"], str)
        return
    assert first[0]["content"][0] == second[0]["content"][0]
    assert first[0]["content"][0]["prompt_cache_breakpoint"] == {"mode": "explicit"}
    assert first[0]["content"][1] == {"type": "input_text", "text": "Who built it?"}
    assert [isinstance(each["content"], list) for each in short] == [False, True]


def test_a_schema_is_asked_for_in_the_words_of_the_api(opened: Make, served: Served, dialect: Dialect) -> None:
    served.replies = [streamed(dialect.streamed(text='{"a":1}'))]
    schema = '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}'
    assert asked(opened(), CHAT, "end", schema=schema).text == '{"a":1}'
    body = served.generations[0].body
    asked_for: dict[str, Callable[[], Any]] = {
        "anthropic": lambda: body["output_config"]["format"]["schema"],
        "responses": lambda: body["text"]["format"]["schema"],
        "gemini": lambda: body["generationConfig"]["responseJsonSchema"],
    }
    assert asked_for[dialect.api]() == json.loads(schema)


def test_how_much_a_model_thinks_is_said_in_the_words_of_the_api(
    opened: Make, served: Served, dialect: Dialect
) -> None:
    served.replies = [streamed(dialect.streamed(text=TEXT))]
    asked(opened())
    asked(opened(effort="low"))
    budget, effort = (asked.body for asked in served.generations)
    thinking: dict[str, Callable[[Event], Any]] = {
        "anthropic": lambda body: {**body["thinking"], **body.get("output_config", {})},
        "responses": lambda body: {"include": body["include"], **body.get("reasoning", {})},
        "gemini": lambda body: body["generationConfig"]["thinkingConfig"],
    }
    expected: dict[str, Any] = {
        "anthropic": [{"type": "enabled", "budget_tokens": 2000}, ADAPTIVE | {"effort": "low"}],
        "responses": [
            {"include": ["reasoning.encrypted_content"]},
            {"include": ["reasoning.encrypted_content"], "effort": "low"},
        ],
        "gemini": [
            {"includeThoughts": True, "thinkingBudget": 2000},
            {"includeThoughts": True, "thinkingLevel": "low"},
        ],
    }
    assert [thinking[dialect.api](budget), thinking[dialect.api](effort)] == expected[dialect.api]
    assert "2050" in content(budget)


ADAPTIVE = {"type": "adaptive", "display": "summarized"}

ERRORS: dict[str, Callable[[str], Event]] = {
    "anthropic": lambda kind: {"type": "error", "error": {"type": kind, "message": "No."}},
    "responses": lambda kind: {
        "type": "response.failed",
        "response": {"status": "failed", "error": {"code": kind, "message": "No."}},
    },
    "gemini": lambda kind: {"error": {"code": 503 if kind == "overloaded_error" else 400, "message": "No."}},
}


@pytest.mark.parametrize(
    ("kind", "error"), [("overloaded_error", UnavailableError), ("invalid_request_error", StepError)]
)
def test_an_error_within_a_stream_is_what_its_type_says(
    opened: Make, served: Served, dialect: Dialect, kind: str, error: type[CotrailError]
) -> None:
    served.replies = [streamed([*dialect.streamed(thought=THOUGHT)[:2], ERRORS[dialect.api](kind)])]
    with pytest.raises(error, match="No"):
        asked(opened())


def test_a_stream_that_breaks_off_is_tried_again(opened: Make, served: Served, dialect: Dialect) -> None:
    served.replies = [streamed([*dialect.streamed(text=TEXT)[:3], None])]
    with pytest.raises(TransientStepError, match="broke"):
        asked(opened(), until="end")


def test_a_batch_has_the_same_request_and_reads_the_same_answer(opened: Make, served: Served, dialect: Dialect) -> None:
    served.replies = [streamed(dialect.streamed(thought=THOUGHT, text=TEXT))]
    model: Any = opened()
    request = GenerationRequest(CHAT, "sentence", 50)
    live = model.generate(request)
    body = json.loads(model.batch_body(request))
    assert served.generations[0].body == body | ({"stream": True} if dialect.api != "gemini" else {})
    whole = json.dumps(dialect.whole(thought=THOUGHT, text=TEXT))
    batched = model.batch_result(request, BatchAnswer("line", 200, whole))
    # A stream is read to its end, but what stands behind the sentence isn't kept.
    assert replace(batched, raw=live.raw) == live


def test_engines_of_their_own_need_a_key_alone(tmp_path: Any) -> None:
    path = tmp_path / "models.toml"
    path.write_text(
        '[models.c]\nengine = "anthropic"\nmodel = "claude"\ncontext = 9000\n'
        '[models.g]\nengine = "gemini"\nmodel = "gemini-3"\ncontext = 9000\n'
    )
    engines: Any = {name: spec.engine for name, spec in catalogue(path).items()}
    assert (engines["c"].api, engines["c"].key_variable) == ("anthropic", "ANTHROPIC_API_KEY")
    assert (engines["g"].api, engines["g"].key_variable) == ("gemini", "GEMINI_API_KEY")
    assert "log probabilities" in engines["c"].lacks("scores")
