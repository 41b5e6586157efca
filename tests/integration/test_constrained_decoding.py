"""Models of random weights, which write noise otherwise, held to JSON by a schema or to one of several words."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cotrail.core.generation import Sampling
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel, Profile
from cotrail.core.prompts import Prompt, user
from cotrail.core.results import Generated
from cotrail.engines.language_models.thinking import Thinking
from tests.integration.forms import HARD, SCHEMA, WORDS, follows
from tests.integration.learned import Exchange, taught
from tests.integration.test_transformers import PROMPTS, SIZES, save

pytestmark = pytest.mark.usefixtures("transformers")

CHAT = Prompt(turns=(user("Who built it?"),))

Make = Callable[..., LanguageModel]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of random weights that continues plain texts."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    return save(tmp_path_factory.mktemp("plain"), LlamaForCausalLM(LlamaConfig(**SIZES)), endless=True)


@pytest.fixture(scope="module", params=["words", "controls"])
def thinking_folder(request: pytest.FixtureRequest) -> Path:
    """A chat model of random weights that may think, whose marks are words or control tokens."""
    talk = [Exchange("Who built it?", "<think>Brenn, I think.</think>Brenn built it.")]
    return taught("untaught", talk, steps=0) / str(request.param)


@pytest.fixture
def open_model() -> Iterator[Make]:
    from cotrail.engines.language_models.transformers.model import TransformersModel

    made: list[LanguageModel] = []

    def open_(path: Path, profile: Profile = "fast", slots: int = 1, **thinking: Any) -> LanguageModel:
        made.append(TransformersModel(path, "noise", profile, slots, 1024, Thinking(**thinking)))
        return made[-1]

    yield open_
    for model in made:
        model.interrupt()


def ask(model: LanguageModel, prompt: Prompt = PROMPTS[0], most: int = 60, **more: Any) -> Generated:
    return model.generate(GenerationRequest(prompt, "end", most, **more))


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.5, seed=3, top_k=50, repetition_penalty=1.3)])
def test_noise_becomes_json_and_words(folder: Path, open_model: Make, profile: Profile, sampling: Sampling) -> None:
    model = open_model(folder, profile)
    held = ask(model, schema=SCHEMA, sampling=sampling, scored=True)
    assert follows(held)
    assert (held.ended, held.drafted_tokens) == ("end", 0)
    assert "".join(text for text, _ in held.tokens) == held.raw
    assert ask(model, choices=WORDS, sampling=sampling).text in WORDS
    assert ask(model, schema=SCHEMA, sampling=sampling).raw == held.raw


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_texts_beside_those_that_are_held_stay_the_same(folder: Path, open_model: Make, profile: Profile) -> None:
    asked: list[dict[str, Any]] = [{}, {"schema": SCHEMA}, {}, {"choices": WORDS}, {}]
    alone = open_model(folder, profile)
    expected = [ask(alone, prompt, **more).raw for prompt, more in zip(PROMPTS, asked, strict=True)]
    together = open_model(folder, profile, slots=5)
    with ThreadPoolExecutor(5) as pool:
        results = list(pool.map(lambda prompt, more: ask(together, prompt, **more), PROMPTS, asked))
    assert [result.raw for result in results] == expected
    assert follows(results[1])
    assert results[3].text in WORDS


@pytest.mark.parametrize("schema", HARD.values(), ids=HARD)
def test_a_schema_that_cannot_be_followed_harms_nobody(folder: Path, open_model: Make, schema: dict[str, Any]) -> None:
    model = open_model(folder)
    free = ask(model).raw
    sampling = Sampling(temperature=1.5, seed=1)
    assert ask(model, schema=json.dumps(schema), sampling=sampling).generated_tokens > 1
    assert ask(model, schema=SCHEMA).text
    assert ask(model).raw == free


def test_a_schema_that_cannot_be_read_holds_nothing(folder: Path, open_model: Make) -> None:
    model = open_model(folder)
    hard = json.dumps(HARD["a pattern that it doesn't know"])
    assert ask(model, schema=hard).raw == ask(model).raw


def test_keywords_that_are_unknown_are_left_to_the_check(folder: Path, open_model: Make) -> None:
    schema = {"type": "integer", "minimum": 10, "maximum": 99, "if": {"minimum": 50}, "then": {"multipleOf": 2}}
    assert 10 <= int(ask(open_model(folder), schema=json.dumps(schema)).text) <= 99


def test_stop_strings_and_the_most_tokens_end_what_is_held_too(folder: Path, open_model: Make) -> None:
    model = open_model(folder)
    stopped = ask(model, schema=SCHEMA, stop=(": ",))
    assert (stopped.text, stopped.ended, stopped.stop) == ('{"answer"', "stop", ": ")
    cut = ask(model, schema=SCHEMA, most=5)
    assert (cut.ended, cut.generated_tokens) == ("length", 5)
    assert cut.text.startswith('{"')


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_a_text_is_held_from_its_thought_on(thinking_folder: Path, open_model: Make, profile: Profile) -> None:
    model = open_model(thinking_folder, profile, template={"opens": True}, thought_tokens=9)
    free, held = ask(model, CHAT), ask(model, CHAT, schema=SCHEMA)
    assert held.thoughts == free.thoughts != ""
    assert follows(held)
    assert ask(model, CHAT, choices=WORDS).text in WORDS


def test_a_thought_that_is_broken_off_in_a_character_leaves_nothing_of_it_in_the_text(
    thinking_folder: Path, open_model: Make
) -> None:
    for most in range(1, 12):
        model = open_model(thinking_folder, template={"opens": True}, thought_tokens=most)
        assert ask(model, CHAT, choices=WORDS).raw.strip() in WORDS


def test_noise_that_may_begin_with_a_thought_becomes_json(thinking_folder: Path, open_model: Make) -> None:
    model = open_model(thinking_folder, thought_tokens=9)
    for seed in range(5):
        assert follows(ask(model, CHAT, schema=SCHEMA, sampling=Sampling(temperature=1.0, seed=seed)))
