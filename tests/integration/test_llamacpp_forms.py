"""llama.cpp held to JSON by a schema or to one of several words."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cotrail.core.generation import Sampling
from cotrail.core.ports.language_model import GenerationRequest, Profile
from cotrail.core.prompts import Prompt, plain, user
from cotrail.core.results import Generated
from cotrail.engines.language_models.llamacpp.model import LlamaCppModel
from tests.integration.forms import HARD, SCHEMA, WORDS, follows

CHAT = Prompt(turns=(user("Who built the tower of Brenn?"),))
STORY = Prompt(turns=(plain("Once upon a time there was"),))

Make = Callable[..., LlamaCppModel]


def ask(model: LlamaCppModel, prompt: Prompt = CHAT, most: int = 60, **more: Any) -> Generated:
    return model.generate(GenerationRequest(prompt, "end", most, **more))


@pytest.mark.parametrize("prompt", [CHAT, STORY], ids=["a conversation", "plain text"])
@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_the_form_is_written_and_other_texts_stay_as_they_are(smollm2: Make, profile: Profile, prompt: Prompt) -> None:
    model = smollm2(profile)
    free = ask(model, prompt, 8).raw
    sampling = Sampling(temperature=1.5, seed=3, top_k=50, repetition_penalty=1.3)
    held = ask(model, prompt, schema=SCHEMA, scored=True)
    assert follows(held)
    assert (held.ended, "".join(text for text, _ in held.tokens)) == ("end", held.raw)
    assert ask(model, prompt, choices=WORDS, sampling=sampling).text in WORDS
    assert ask(model, prompt, 8).raw == free


def test_texts_of_every_form_are_written_together(smollm2: Make) -> None:
    model = smollm2(slots=2)
    forms: list[dict[str, Any]] = [{"schema": SCHEMA}, {"choices": WORDS}]
    with ThreadPoolExecutor(2) as pool:
        held, word = pool.map(lambda form: ask(model, **form), forms)
    assert follows(held)
    assert word.text in WORDS


def test_schemas_that_cannot_be_followed_harm_nobody(smollm2: Make) -> None:
    model = smollm2()
    free = ask(model, most=3).raw
    for schema in HARD.values():
        sampling = Sampling(temperature=1.5, seed=1)
        assert ask(model, schema=json.dumps(schema), most=3, sampling=sampling).generated_tokens > 1
    assert ask(model, choices=WORDS).text in WORDS
    assert ask(model, most=3).raw == free


def test_a_stop_string_ends_what_is_held_too(smollm2: Make) -> None:
    stopped = ask(smollm2(), schema=SCHEMA, stop=(": ",))
    assert (stopped.text, stopped.ended, stopped.stop) == ('{"answer"', "stop", ": ")
