"""Models of providers, named without a table."""

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from genai_prices.data_snapshot import get_snapshot

from cotrail.configuration.settings import settings
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt, user
from cotrail.engines.language_models.catalogue import ModelSpec, check_capabilities, check_thinking, find_model
from cotrail.engines.language_models.providers import PROVIDERS
from cotrail.engines.language_models.served.protocols.wire_protocols import PROTOCOLS
from cotrail.engines.language_models.served.request import Order
from cotrail.errors import InputError, UnknownNameError
from cotrail.services.library.models import describe_models
from cotrail.services.runs.checking import check_key, check_range
from cotrail.systems.registry import SYSTEMS
from cotrail.systems.spec import find_spec
from tests.cases import each_case


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "models.toml"


def engine(path: Path, name: str) -> Any:
    return find_model(path, name).engine


@each_case("provider", list(PROVIDERS))
def test_every_provider_has_models_that_can_be_asked(path: Path, provider: str) -> None:
    found = find_model(path, f"{provider}/vendor/some-model")
    assert isinstance(found, ModelSpec)
    assert (found.name, found.engine.served) == (f"{provider}/vendor/some-model", True)
    assert engine(path, found.name).model == "vendor/some-model"
    check_thinking(found)
    check_capabilities(found, frozenset({"turns", "tools"}))


def test_families_of_models_have_what_they_need(path: Path) -> None:
    plain, thinking = engine(path, "openai/gpt-4o"), engine(path, "openai/gpt-5.1")
    assert (plain.api, plain.thinks) == ("chat", None)
    assert (thinking.api, thinking.thinks, thinking.thought_tokens) == ("responses", "hidden", 8000)
    assert engine(path, "anthropic/claude-sonnet-4-6").api == "anthropic"
    older, opus, newest = (engine(path, f"anthropic/claude-{each}") for each in ("sonnet-4-5", "opus-4-8", "opus-5-5"))
    assert (older.omits, older.thinks) == ((), None)
    assert (opus.omits, opus.thinks) == (("temperature", "top_p"), None)
    assert (newest.thinks, newest.effort, newest.thought_tokens) == ("field", "low", 8000)
    assert engine(path, "gemini/gemini-2.0-flash").thinks is None
    assert engine(path, "gemini/gemini-4-argon").thought_tokens == 8000
    assert engine(path, "openrouter/openai/gpt-5.4").thought_tokens == 8000
    assert engine(path, "openrouter/meta-llama/llama-3.3-70b").thinks is None
    assert engine(path, "gemini/gemini-3-pro").thinks == "field"
    assert engine(path, "deepseek/deepseek-chat").hands_back == "all"
    assert engine(path, "mistral/magistral-medium").omits == ("seed", "stream_options")
    assert (engine(path, "xai/grok-3").thinks, engine(path, "xai/grok-4").thinks) == (None, "field")
    with pytest.raises(InputError, match="thinks"):
        check_capabilities(find_model(path, "openai/o4-mini"), frozenset({"scores"}))


@each_case("provider", [name for name in PROVIDERS if name != "anthropic"])
def test_what_no_provider_takes_is_refused_before_it_is_sent(path: Path, provider: str) -> None:
    """Search-o1 draws by top_k and a repetition penalty."""
    spec = find_spec(SYSTEMS, "search-o1")
    with pytest.raises(InputError, match="no top_k and no repetition penalty"):
        check_capabilities(find_model(path, f"{provider}/some-model"), spec.needs(spec.settings()).capabilities)


@each_case(
    ("model", "temperature", "refused"),
    [
        ("anthropic/claude", 1.0, False),
        ("anthropic/claude", 1.2, True),
        ("gemini/g", 1.9, False),
        ("gemini/g", 2.5, True),
    ],
)
def test_a_temperature_that_a_provider_refuses_is_refused_before(
    path: Path,
    model: str,
    temperature: float,
    refused: bool,  # noqa: FBT001
) -> None:
    with pytest.raises(InputError, match="takes temperatures up to") if refused else nullcontext():
        check_range(model, engine(path, model), temperature)


def test_no_request_to_anthropic_has_what_its_model_refuses(path: Path) -> None:
    """Every model whose price is known, and those to come: since Opus 4.7 none takes a temperature or a budget."""
    provider = next(each for each in get_snapshot().providers if each.id == "anthropic")
    names = [each.id for each in provider.models if each.id.startswith("claude-") and each.id[7:9] != "v1"]
    for name in (*names, "claude-opus-7"):
        endpoint = engine(path, f"anthropic/{name}")
        request = GenerationRequest(Prompt(turns=(user("Who?"),)), "end", 50)
        order = Order(endpoint=endpoint, dialect="openai", prompt=request.prompt, request=request)
        body = PROTOCOLS["anthropic"].body(order)
        takes = bool(re.match(r"claude-(2|3|(opus|sonnet|haiku)-4-[0-6])", name))
        assert ("temperature" in body) == takes, name
        assert body.get("thinking", {}).get("type") in (None, "adaptive"), name


def test_a_table_comes_first(path: Path) -> None:
    path.write_text(
        '[models."openai/gpt-5.1"]\nengine = "openai"\nurl = "http://localhost/v1"\nmodel = "own"\ncontext = 9\n'
    )
    assert engine(path, "openai/gpt-5.1").model == "own"


@pytest.mark.parametrize(
    ("name", "said"), [("opnai/gpt", "no model"), ("meta-llama/Llama", "no model"), ("openai/", "no model")]
)
def test_another_name_is_unknown(path: Path, name: str, said: str) -> None:
    with pytest.raises(UnknownNameError, match=said):
        find_model(path, name)


def test_what_is_known_of_a_model_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    [described] = describe_models("deepseek/deepseek-chat")
    assert described.table["key_variable"] == "DEEPSEEK_API_KEY"
    assert described.location == "https://api.deepseek.com/v1"
    settings.cache_clear()


def test_a_key_that_the_local_stack_lacks_is_asked_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.cache_clear()
    model = find_model(path, "xai/grok").engine
    with pytest.raises(InputError, match=r"XAI_API_KEY isn't set.*cotrail down"):
        check_key("xai/grok", model)
    monkeypatch.setenv("XAI_API_KEY", "sk")
    check_key("xai/grok", model)
    monkeypatch.delenv("XAI_API_KEY")
    monkeypatch.setenv("COTRAIL_DATABASE_URL", "postgresql://elsewhere/db")
    settings.cache_clear()
    check_key("xai/grok", model)
    settings.cache_clear()


def test_a_model_that_thinks_needs_tokens_for_it(path: Path) -> None:
    path.write_text(
        '[models.m]\nengine = "openai"\nurl = "http://localhost/v1"\nmodel = "m"\ncontext = 99\nthinks = "tags"\n'
    )
    with pytest.raises(InputError, match="set thought_tokens"):
        check_thinking(find_model(path, "m"))
