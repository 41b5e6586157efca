"""`cotrail models NAME --ask`: what a server tells and takes becomes a table that works."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from cotrail.configuration.settings import settings
from cotrail.core.calls import Call
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt, user
from cotrail.engines.language_models.catalogue import find_model, open_model
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.providers import PROVIDERS, Provider, engine_at
from cotrail.engines.language_models.served.probing.learning import ListedModel, listed_models
from cotrail.errors import InputError
from cotrail.services.library.models import add_model, ask_model
from tests.integration.provider_answers import anthropic_events
from tests.integration.served import Reply, Served, answer, delta, streamed


def told(answers: dict[str, object]) -> Reply:
    """What is there to be looked at, by its path."""

    def reply(handler: BaseHTTPRequestHandler) -> None:
        found = answers.get(handler.path)
        answer(404 if found is None else 200, found)(handler)

    return reply


LLAMA_CPP = {"id": "q.gguf", "meta": {"n_ctx_train": 131_072}}
PROPERTIES = {"default_generation_settings": {"n_ctx": 8192}}


@pytest.mark.parametrize(
    ("api", "answers", "listed"),
    [
        ("chat", {"/v1/models": {"data": [{"id": "m", "max_model_len": 9000}]}}, [ListedModel("m", 9000)]),
        ("chat", {"/v1/models": {"data": [{"id": "m", "context_length": 9000}]}}, [ListedModel("m", 9000)]),
        ("chat", {"/v1/models": {"data": [LLAMA_CPP]}, "/props": PROPERTIES}, [ListedModel("q.gguf", 8192)]),
        ("chat", {"/v1/models": {"data": [LLAMA_CPP]}}, [ListedModel("q.gguf", 131_072)]),
        ("chat", {"/v1/models": {"data": [{"id": "models/g"}, {"id": 3}, 3]}}, [ListedModel("g", 0)]),
        (
            "gemini",
            {"/v1/models?pageSize=1000": {"models": [{"name": "models/g", "inputTokenLimit": 1_048_576}]}},
            [ListedModel("g", 1_048_576)],
        ),
        (
            "anthropic",
            {"/v1/models?limit=1000": {"data": [{"id": "c", "max_input_tokens": 200_000}]}},
            [ListedModel("c", 200_000)],
        ),
        ("chat", {"/v1/models": {"data": 3}}, []),
    ],
)
def test_the_contexts_that_servers_list_are_read(
    served: Served, api: Any, answers: dict[str, object], listed: list[ListedModel]
) -> None:
    served.listing = told(answers)
    assert listed_models(Endpoint(url=served.url, model="m", context=100, api=api)) == listed


def test_a_server_that_lists_nothing_says_so(served: Served) -> None:
    served.listing = told({})
    with pytest.raises(InputError, match="/v1/models answered 404"):
        listed_models(Endpoint(url=served.url, model="m", context=100, api="chat"))


def no(message: str) -> Reply:
    error = {"type": "invalid_request_error", "message": message}
    return answer(400, {"type": "error", "error": error})


def opus(handler: BaseHTTPRequestHandler) -> None:
    """A model that thinks adaptively alone, and takes no sampling."""
    body: dict[str, Any] = handler.body  # type: ignore[attr-defined]
    thinking = body.get("thinking", {}).get("type")
    sampled = next((name for name in ("temperature", "top_p", "top_k") if name in body), None)
    if handler.path != "/v1/messages":
        answer(404, {"type": "error", "error": {"type": "not_found_error", "message": "Not found"}})(handler)
    elif sampled:
        no(f"`{sampled}` is deprecated for this model.")(handler)
    elif thinking == "enabled":
        no(
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
            '"output_config.effort" to control thinking behavior.'
        )(handler)
    elif body["messages"][-1]["role"] == "assistant":
        no("This model does not support assistant message prefill.")(handler)
    else:
        calls = [Call(name="weather", arguments='{"city": "Oslo"}')] if body.get("tools") else []
        thought = "Two hours later." if thinking else ""
        events = anthropic_events(thought=thought, text="11:55", calls=calls)
        for event in events if not thought else ():
            event.get("usage", {}).pop("output_tokens_details", None)
        streamed(events)(handler)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    monkeypatch.setenv("ASKED_KEY", "sk-asked")
    settings.cache_clear()
    yield tmp_path
    settings.cache_clear()


@pytest.mark.parametrize(
    ("given", "settled"),
    [
        ({}, {"omits": ["temperature", "top_p"], "thinks": "no"}),
        ({"thinks": "field"}, {"thinks": "field", "effort": "low", "thought_tokens": 8000}),
        ({"thinks": "field", "thought_tokens": 9000}, {"thinks": "field", "effort": "low", "thought_tokens": 9000}),
    ],
)
def test_the_table_that_is_printed_works(
    home: Path, served: Served, given: dict[str, Any], settled: dict[str, Any]
) -> None:
    served.replies = [opus]
    served.listing = told(
        {"/v1/models?limit=1000": {"data": [{"id": "claude-opus-4-7", "max_input_tokens": 1_000_000}]}}
    )
    entry = {"engine": "anthropic", "url": served.url, "key_variable": "ASKED_KEY", **given}
    (home / "models.toml").write_text(tomli_w.dumps({"models": {"opus": entry}}))
    asked = ask_model("opus", lambda line: None)
    assert {name: asked.table.get(name) for name in settled} == settled
    assert (asked.table["model"], asked.table["context"]) == ("claude-opus-4-7", 1_000_000)
    (home / "models.toml").write_text(asked.toml)
    model = open_model(find_model(home / "models.toml", "opus"), "fast", 1)
    written = model.generate(GenerationRequest(Prompt(turns=(user("When?"),)), "end", 50))
    assert (written.text, bool(written.thoughts)) == ("11:55", asked.table["thinks"] == "field")


def test_a_table_that_is_refused_as_a_whole_is_not_printed(home: Path, served: Served) -> None:
    def whole(handler: BaseHTTPRequestHandler) -> None:
        tokens = handler.body.get("max_tokens", 0)  # type: ignore[attr-defined]
        if tokens > 4096:
            no(f"max_tokens is too large: {tokens}")(handler)
        else:
            streamed(anthropic_events(thought="Two hours later.", text="11:55"))(handler)

    served.replies = [whole]
    entry = {
        "engine": "anthropic",
        "url": served.url,
        "model": "c",
        "context": 9000,
        "thinks": "field",
        "effort": "low",
    }
    for tokens, expected in ((8000, 2000), (80_000, None)):
        table = {"models": {"c": entry | {"key_variable": "ASKED_KEY", "thought_tokens": tokens, "context": 200_000}}}
        (home / "models.toml").write_text(tomli_w.dumps(table))
        if expected is None:
            with pytest.raises(InputError, match="not together: 400: max_tokens is too large"):
                ask_model("c", lambda line: None)
        else:
            assert ask_model("c", lambda line: None).table["thought_tokens"] == expected


def test_a_model_without_a_table_gets_the_context_that_its_server_lists(
    home: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {**PROVIDERS["ollama"].table, "url": served.url}
    monkeypatch.setitem(PROVIDERS, "ollama", Provider(table=table))
    served.listing = told({"/v1/models": {"data": [{"id": "m", "context_length": 1_000_000}]}})
    served.replies = [streamed([delta(content="11:55"), delta("stop"), "[DONE]"])]
    assert ask_model("ollama/m", lambda line: None).table["context"] == 1_000_000


def test_a_model_is_added_behind_those_that_are_there_and_only_once(home: Path, served: Served) -> None:
    served.replies = [opus]
    served.listing = told(
        {"/v1/models?limit=1000": {"data": [{"id": "claude-opus-4-7", "max_input_tokens": 1_000_000}]}}
    )
    (home / "models.toml").write_text('[models.other]\nengine = "scripted"\npath = "script.json"\n')
    given = {"engine": "anthropic", "url": served.url, "key_variable": "ASKED_KEY"}
    asked = add_model("opus", given, lambda line: None)
    written = (home / "models.toml").read_text()
    assert written.startswith("[models.other]")
    assert written.endswith(asked.toml)
    assert find_model(home / "models.toml", "opus").engine.model == "claude-opus-4-7"  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="has a table of the model opus already"):
        add_model("opus", given, lambda line: None)
    with pytest.raises(InputError, match="UNSET_KEY holds none"):
        add_model("another", {**given, "key_variable": "UNSET_KEY"}, lambda line: None)
    assert (home / "models.toml").read_text() == written


@pytest.mark.parametrize(
    ("url", "engine"),
    [
        ("http://gpu1:8000/v1", "openai"),
        ("https://api.anthropic.com/v1", "anthropic"),
        ("https://generativelanguage.googleapis.com/v1beta", "gemini"),
        ("nowhere", "openai"),
    ],
)
def test_the_engine_of_an_address_is_its_providers(url: str, engine: str) -> None:
    assert engine_at(url) == engine
