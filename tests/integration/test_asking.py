"""`cotrail models NAME --ask`: a model is asked what it takes, and the table that is printed fits it."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w

pytest.importorskip("httpx2", reason="httpx2 isn't installed")

from cotrail.configuration.settings import settings
from cotrail.core.actions.generate import check_answered
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt, plain, system, user
from cotrail.engines.language_models.catalogue import find_model, open_model
from cotrail.engines.language_models.served.probing.probe import MOST_REQUESTS
from cotrail.errors import InputError, UnknownNameError
from cotrail.services.lists.model_asking import AskedModel, ask_model
from tests.integration import pretended_models as pretended
from tests.integration.pretended_models import Body, Pretended
from tests.integration.served import KEY, Reply, answer

Behave = Callable[[str, Body], Reply]
Start = Callable[[Behave], Pretended]

GIVEN = {"engine": "openai", "model": "m", "context": 32_000}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    yield tmp_path
    settings.cache_clear()


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a server whose model behaves in some way."""
    servers: list[Pretended] = []

    def run(behave: Behave) -> Pretended:
        servers.append(Pretended(behave))
        return servers[-1]

    yield run
    for server in servers:
        server.close()


def asked(home: Path, server: Pretended, **table: Any) -> AskedModel:
    """What a model of this table answers; its proposal then is its table."""
    given = {**GIVEN, "url": server.url, **table}
    (home / "models.toml").write_text(tomli_w.dumps({"models": {"m": {k: v for k, v in given.items() if v}}}))
    found = ask_model("m", lambda line: None)
    assert len(server.generations) == found.requests <= MOST_REQUESTS
    (home / "models.toml").write_text(found.toml)
    assert tomllib.loads(found.toml) == {"models": {"m": found.table}}
    return found


def chains(home: Path, server: Pretended) -> list[str]:
    """A few steps as systems ask for them, by the proposed table: none is refused."""
    model = open_model(find_model(home / "models.toml", "m"), "fast", 1)
    turns = Prompt(turns=(system("Answer."), user("When does the train arrive?")))
    text = Prompt(turns=(plain("Q: When does the train arrive?\nA:"),))
    prompts = [text] if find_model(home / "models.toml", "m").engine.lacks("turns") else [text, turns]
    results = [model.generate(GenerationRequest(each, "chain", 100)) for each in prompts]
    for result in results:
        check_answered(result)
    return [result.text for result in results]


CASES: dict[str, tuple[Behave, Reply, dict[str, Any], dict[str, Any]]] = {
    "GPT-5": (
        pretended.gpt_5,
        pretended.NOT_FOUND,
        {},
        {
            "api": "chat",
            "thinks": "hidden",
            "thought_tokens": 8000,
            "limit_field": "max_completion_tokens",
            "omits": {"temperature", "top_p", "stop", "logprobs"},
            "without": {"sampling"},
        },
    ),
    "vLLM": (pretended.qwen_in_vllm, pretended.VLLM, {}, {"api": "chat", "thinks": "field", "thought_tokens": 8000}),
    "llama.cpp": (
        pretended.tags_in_llama_cpp,
        pretended.LLAMA_CPP,
        {},
        {"api": "chat", "thinks": "tags", "thought_tokens": 8000},
    ),
    "template": (
        pretended.opened_by_its_template,
        pretended.VLLM,
        {"context": 6000},
        {"api": "chat", "thinks": "inside", "thought_tokens": 3000},
    ),
    "Mistral": (
        pretended.mistral,
        pretended.NOT_FOUND,
        {},
        {
            "api": "chat",
            "thinks": "field",
            "thought_tokens": 8000,
            "omits": {"seed", "stream_options", "logprobs"},
            "without": {"sampling"},
        },
    ),
    "no thoughts": (
        pretended.silent,
        pretended.NOT_FOUND,
        {},
        {"api": "chat", "thinks": "no", "continues": "prefix", "without": {"sampling"}},
    ),
    "completions": (pretended.base, pretended.LLAMA_CPP, {}, {"api": "completions", "thinks": "no"}),
    "no streams": (
        pretended.whole_only,
        pretended.NOT_FOUND,
        {},
        {"api": "chat", "thinks": "no", "omits": {"seed", "stream"}, "without": {"sampling"}},
    ),
    "Anthropic": (
        pretended.claude,
        pretended.NOT_FOUND,
        {"engine": "anthropic", "key_variable": "A_KEY"},
        {"api": "anthropic", "thinks": "no", "omits": {"top_p"}},
    ),
    "Anthropic thinking": (
        pretended.claude,
        pretended.NOT_FOUND,
        {"api": "anthropic", "thinks": "field", "thought_tokens": 4000},
        {"api": "anthropic", "thinks": "field", "thought_tokens": 4000},
    ),
    "Gemini": (
        pretended.gemini,
        pretended.NOT_FOUND,
        {"engine": "gemini", "key_variable": "A_KEY"},
        {"api": "gemini", "thinks": "field", "thought_tokens": 8000},
    ),
    "responses": (
        pretended.responses,
        pretended.NOT_FOUND,
        {"api": "chat"},
        {"api": "responses", "thinks": "hidden", "thought_tokens": 8000, "omits": {"temperature", "top_p"}},
    ),
}

LEARNED = ("api", "continues", "without", "thinks", "thought_tokens", "limit_field", "omits")


@pytest.mark.parametrize("case", CASES)
def test_the_table_that_is_printed_fits_the_model(
    home: Path, start: Start, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    behave, tokenizer, table, expected = CASES[case]
    monkeypatch.setenv("A_KEY", KEY)
    server = start(behave)
    server.tokenizer = tokenizer
    if table.get("engine") == "gemini":
        table = table | {"url": f"{server.url}beta"}
    found = asked(home, server, **table)
    learned = {key: found.table[key] for key in LEARNED if key in found.table}
    assert {key: set(value) if isinstance(value, list) else value for key, value in learned.items()} == expected
    assert chains(home, server) in ([pretended.TEXT] * 2, [pretended.TEXT])


def listing(*models: dict[str, Any]) -> Reply:
    return answer(200, {"object": "list", "data": list(models)})


def test_a_table_needs_no_more_than_an_address(home: Path, start: Start) -> None:
    server = start(pretended.qwen_in_vllm)
    server.tokenizer, server.listing = pretended.VLLM, listing({"id": "Qwen/Qwen3-8B", "max_model_len": 40_960})
    found = asked(home, server, model=None, context=None)
    assert (found.table["model"], found.table["context"], found.table["api"]) == ("Qwen/Qwen3-8B", 40_960, "chat")
    assert "# what its server lists\ncontext = 40960\n" in found.toml
    assert chains(home, server) == [pretended.TEXT] * 2


def test_a_context_is_no_longer_than_the_servers(home: Path, start: Start) -> None:
    server = start(pretended.silent)
    server.listing = listing({"id": "other"}, {"id": "m", "context_length": 4096})
    assert asked(home, server).table["context"] == 4096


@pytest.mark.parametrize(
    ("models", "said"), [([{"id": "a"}, {"id": "b"}], "it lists a, b"), ([], "it doesn't list its models")]
)
def test_a_model_that_has_no_name_is_asked_for(
    home: Path, start: Start, models: list[dict[str, Any]], said: str
) -> None:
    server = start(pretended.silent)
    server.listing = listing(*models)
    with pytest.raises(InputError, match=f"has no `model`.*{said}"):
        asked(home, server, model=None)
    assert not server.generations


def test_what_it_took_and_what_it_tells_is_said(home: Path, start: Start) -> None:
    lines: list[str] = []
    told = {"x-ratelimit-limit-requests": "60000", "x-ratelimit-limit-tokens": "2000000"}
    message = {"content": pretended.TEXT}
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    whole = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}

    def limited(path: str, body: Body) -> Reply:
        if body.get("stream"):
            return answer(400, {"error": {"message": "no", "param": "stream"}})
        return answer(200, whole, told) if path == "/v1/chat/completions" else pretended.NOT_FOUND

    server = start(limited)
    table = {**GIVEN, "url": server.url, "price": {"input": 1, "output": 2}}
    (home / "models.toml").write_text(tomli_w.dumps({"models": {"m": table}}))
    found = ask_model("m", lines.append)
    answers = found.spent.usage.calls
    assert found.requests == len(lines) == len(server.generations)
    assert (found.spent.usage.input_tokens, str(found.spent.dollars)) == (10 * answers, f"{answers * 0.00002:.7f}")
    assert lines[0].startswith("1. the API chat: 400: no")
    assert "It reports the tokens read, written." in found.toml
    assert "60,000 requests, 2,000,000 tokens a minute" in found.toml
    assert found.table["price"] == {"input": 1, "output": 2}
    (home / "models.toml").write_text(found.toml)
    assert chains(home, server) == [pretended.TEXT] * 2


def test_neither_keys_nor_line_breaks_of_a_server_are_printed(
    home: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    lines: list[str] = []

    def echoing(path: str, body: Body) -> Reply:
        if body.get("tools") or body.get("logprobs"):
            return answer(400, {"error": {"message": f'No {KEY}\nomits = []\n[models.other] """ \x1b[2J'}})
        return pretended.silent(path, body)

    server = start(echoing)
    table = {**GIVEN, "url": server.url, "key_variable": "A_KEY"}
    (home / "models.toml").write_text(tomli_w.dumps({"models": {"m": table}}))
    found = ask_model("m", lines.append)
    assert tomllib.loads(found.toml) == {"models": {"m": found.table}}
    assert KEY not in found.toml + repr(found) + "".join(lines)
    assert "[secret]" in found.toml
    assert "\x1b" not in found.toml


def test_a_name_with_a_provider_is_a_table_too(home: Path, start: Start) -> None:
    server = start(pretended.silent)
    table = {**GIVEN, "url": server.url, "template": {"enable_thinking": False}}
    (home / "models.toml").write_text(tomli_w.dumps({"models": {"openai/gpt-5.1": table}}))
    found = ask_model("openai/gpt-5.1", lambda line: None)
    (home / "models.toml").write_text(found.toml)
    engine: Any = find_model(home / "models.toml", "openai/gpt-5.1").engine
    assert (engine.api, engine.template) == ("chat", {"enable_thinking": False})


def test_a_model_of_anthropics_may_be_told_to_think(home: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    found = asked(home, start(pretended.claude), api="anthropic")
    assert any("It thinks where its table asks for it" in note for note in found.notes)


def test_a_server_that_asks_for_a_pause_is_waited_for(
    home: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotrail.engines.language_models.served.pacing.LONGEST_WAIT", 0.0)
    replies = [answer(429, {"error": {"message": "slow"}}, {"Retry-After": "0.05"})]
    server = start(lambda path, body: replies.pop() if replies else pretended.silent(path, body))
    lines: list[str] = []
    table = {**GIVEN, "url": server.url, "account": "acme"}
    (home / "models.toml").write_text(tomli_w.dumps({"models": {"m": table}}))
    found = ask_model("m", lines.append)
    assert lines[0].endswith("429: slow; waiting for 50 ms")
    assert (found.table["api"], len(server.generations)) == ("chat", found.requests + 1)


def test_an_effort_that_is_refused_is_left_out(home: Path, start: Start) -> None:
    def without_effort(path: str, body: Body) -> Reply:
        return pretended.unsupported("reasoning_effort") if "reasoning_effort" in body else pretended.silent(path, body)

    server = start(without_effort)
    found = asked(home, server, effort="huge")
    assert "effort" not in found.table
    assert "# It refuses the effort huge: 400: Unsupported parameter: 'reasoning_effort'" in found.toml
    assert chains(home, server) == [pretended.TEXT] * 2


def test_who_refuses_whatever_is_sent_is_given_up(home: Path, start: Start) -> None:
    server = start(lambda path, body: answer(400, {"error": {"message": f"bad {', '.join(body)}"}}))
    with pytest.raises(InputError, match=r"answers no request to m \(chat: 400: bad .*; responses: 400"):
        asked(home, server)
    assert len(server.generations) <= MOST_REQUESTS


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (answer(404, {"detail": "Not Found"}), "answers no request to m"),
        (answer(401, {"error": {"message": "bad key"}}), "answered 401: bad key; set the environment variable A_KEY"),
        (answer(403, {"error": {"message": "bad key"}}), "answered 403"),
        (answer(402, {"error": {"message": "pay"}}), "the account is used up"),
        (answer(429, {"error": {"code": "insufficient_quota", "message": "no more"}}), "the account is used up"),
        (answer(429, {"error": {"message": "slow"}}, {"Retry-After": "3000"}), "slow"),
    ],
)
def test_whoever_can_not_be_asked_is_said_to(
    home: Path, start: Start, monkeypatch: pytest.MonkeyPatch, reply: Reply, said: str
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with pytest.raises(InputError, match=said):
        asked(home, start(lambda *_: reply), key_variable="A_KEY", account="acme")


def test_who_is_not_behind_a_server_is_not_asked(home: Path, start: Start) -> None:
    with pytest.raises(InputError, match=r"smollm2-135m isn't behind a server \(llamacpp\)"):
        ask_model("smollm2-135m", lambda line: None)
    with pytest.raises(UnknownNameError):
        ask_model("nobody", lambda line: None)
    with pytest.raises(InputError, match="XAI_API_KEY holds none"):
        ask_model("xai/grok", lambda line: None)
    server = start(pretended.silent)
    server.close()
    with pytest.raises(InputError, match=r"can't be reached.*check the url"):
        asked(home, server)


def command(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-m", "cotrail.cli.main", "models", *arguments]
    return subprocess.run(
        line, capture_output=True, text=True, check=False, env=os.environ | {"COTRAIL_HOME": str(home)}
    )


def test_the_command_prints_the_table_alone_and_its_progress_beside_it(home: Path, start: Start) -> None:
    server = start(pretended.silent)
    (home / "models.toml").write_text(tomli_w.dumps({"models": {"m": {**GIVEN, "url": server.url}}}))
    done = command(home, "m", "--ask")
    assert (done.returncode, tomllib.loads(done.stdout)["models"]["m"]["api"]) == (0, "chat")
    assert "1. the API chat: answered, 30 tokens read, 12 written" in done.stderr
    described = json.loads(command(home, "m", "--ask", "--json").stdout)
    assert (described["table"]["api"], described["requests"]) == ("chat", len(server.generations) // 2)


@pytest.mark.parametrize("arguments", [("smollm2-135m", "--ask"), ("--ask",)])
def test_the_command_refuses_who_can_not_be_asked(home: Path, arguments: tuple[str, ...]) -> None:
    refused = command(home, *arguments)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("cotrail: ")


def test_llama_cpps_own_server_is_asked(home: Path, llama: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    table = {"engine": "openai", "url": llama, "key_variable": "A_KEY", "context": 512}
    (home / "models.toml").write_text(tomli_w.dumps({"models": {"m": table}}))
    found = ask_model("m", lambda line: None)
    (home / "models.toml").write_text(found.toml)
    engine: Any = find_model(home / "models.toml", "m").engine
    assert (engine.api, engine.thinks, engine.omits) == ("chat", "no", ())
    assert not {"scores", "sampling", "structure"} & set(engine.without)
    model = open_model(find_model(home / "models.toml", "m"), "fast", 1)
    assert model.generate(GenerationRequest(Prompt(turns=(user("Say hello."),)), "sentence", 20)).text
