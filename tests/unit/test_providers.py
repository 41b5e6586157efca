"""Models of providers, named without a table."""

from pathlib import Path
from typing import Any

import pytest

from cotrail.configuration.settings import settings
from cotrail.engines.language_models.catalogue import ModelSpec, check_capabilities, check_thinking, find_model
from cotrail.engines.language_models.providers import PROVIDERS
from cotrail.errors import InputError, UnknownNameError
from cotrail.services.lists.model_list import describe_models
from cotrail.services.runs.runnable import check_key
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
    assert engine(path, "gemini/gemini-3-pro").thinks == "field"
    assert engine(path, "deepseek/deepseek-chat").hands_back == "all"
    assert engine(path, "mistral/magistral-medium").omits == ("seed", "stream_options")
    assert (engine(path, "xai/grok-3").thinks, engine(path, "xai/grok-4").thinks) == (None, "field")
    with pytest.raises(InputError, match="thinks"):
        check_capabilities(find_model(path, "openai/o4-mini"), frozenset({"scores"}))


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
