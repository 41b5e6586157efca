"""Engines keep all that they compute with where the model is: tried on a pretended GPU."""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cotrail.core.generation import Sampling
from cotrail.core.ports.language_model import Profile
from tests.integration.test_transformers import SIZES, save

if TYPE_CHECKING:
    from cotrail.engines.language_models.transformers.model import Loaded
    from cotrail.engines.language_models.transformers.request import Request
    from cotrail.engines.language_models.transformers.scheduler import ModelRunner
    from cotrail.engines.language_models.transformers.vocabulary import Vocabulary


pytestmark = pytest.mark.usefixtures("transformers")

CONTEXT, SLOTS, REQUESTS = 256, 3, 8
PROFILES: tuple[Profile, ...] = ("fast", "deterministic")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> "Loaded":
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from cotrail.engines.language_models.transformers.model import load

    torch.manual_seed(3)
    return load(save(tmp_path_factory.mktemp("llama"), LlamaForCausalLM(LlamaConfig(**SIZES)), endless=True))


def requests(vocabulary: "Vocabulary") -> "list[Request]":
    """Prompts that begin alike and have chains, every other one of which is drawn, and the last one weighs tokens."""
    from cotrail.engines.language_models.transformers.request import ChoiceScorer, Request

    chance = random.Random(4)
    shared = [chance.randrange(3, 200) for _ in range(60)]
    made = []
    for number in range(REQUESTS):
        tokens = [*shared, *(chance.randrange(3, 200) for _ in range(chance.randrange(5, 90)))]
        sampling = Sampling(temperature=0.7 * (number % 2), seed=number)
        if number % 4 == 1:
            sampling = replace(sampling, top_p=0.9, top_k=40, repetition_penalty=1.2)
        chain, scored = f"question {number}", number % 3 == 0
        made.append(Request(tokens, vocabulary, "sentence", 24, sampling, len(shared), chain, scored=scored))
    made[-1].sampler = ChoiceScorer([5, 6, 7])
    return made


def written(engine: "ModelRunner", asked: "Sequence[Request]") -> list[list[int]]:
    """What an engine writes behind each, without a thread of its own."""
    waiting = list(asked)
    while waiting or engine.busy:
        room = max(0, engine.room())
        admitted, waiting = waiting[:room], waiting[room:]
        if admitted:
            engine.admit(admitted)
        engine.step()
    for request in asked:
        request.future.result(timeout=0)
    return [request.written for request in asked]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_decoder_only_model_writes_on_a_gpu_what_it_writes_on_the_cpu(
    loaded: "Loaded", monkeypatch: pytest.MonkeyPatch, profile: Profile
) -> None:
    from cotrail.engines.language_models.transformers.causal import CausalRunner
    from tests.integration.pretended_gpu import pretended_gpu

    expected = written(CausalRunner(loaded.model, profile, SLOTS, CONTEXT), requests(loaded.vocabulary))
    with pretended_gpu(monkeypatch) as move:
        engine = CausalRunner(move(loaded.model), profile, SLOTS, CONTEXT)
        assert written(engine, requests(loaded.vocabulary)) == expected


@pytest.mark.parametrize("profile", PROFILES)
def test_an_encoder_decoder_model_writes_on_a_gpu_what_it_writes_on_the_cpu(
    loaded: "Loaded", monkeypatch: pytest.MonkeyPatch, profile: Profile
) -> None:
    from benchmarks.shapes import SHAPES
    from cotrail.engines.language_models.transformers.seq2seq import Seq2SeqRunner
    from tests.integration.pretended_gpu import pretended_gpu

    model: Any = SHAPES["tiny"]["tiny-t5"].model("cpu")
    expected = written(Seq2SeqRunner(model, profile, SLOTS, CONTEXT), requests(loaded.vocabulary))
    with pretended_gpu(monkeypatch) as move:
        engine = Seq2SeqRunner(move(model), profile, SLOTS, CONTEXT)
        assert written(engine, requests(loaded.vocabulary)) == expected


def test_what_a_gpu_would_refuse_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from tests.integration.pretended_gpu import OnGpu, pretended_gpu

    with pretended_gpu(monkeypatch) as move:
        layer = move(torch.nn.Linear(2, 2))
        assert isinstance(layer(torch.zeros(1, 2, device="cuda:0")), OnGpu)
        with pytest.raises(RuntimeError, match="on the CPU and on the GPU"):
            layer(torch.zeros(1, 2))
