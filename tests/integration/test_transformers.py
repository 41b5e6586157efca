import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cotrail.core.demonstrations import Demonstration, Demonstrations
from cotrail.core.generation import Sampling
from cotrail.core.ports.cancellation import Interrupted
from cotrail.core.ports.language_model import GenerationRequest, Profile
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Paragraph
from cotrail.engines.language_models.transformers.scheduler import DETERMINISTIC_CHUNK_TOKENS
from cotrail.engines.model_folders import model_identity, weights_digest
from cotrail.errors import InputError, PromptTooLongError, TransientStepError
from cotrail.systems.parts.prompting import few_shot_prompt
from tests.integration.holding import HeldUp, is_cut_off_alone

if TYPE_CHECKING:
    from cotrail.engines.language_models.transformers.causal import CausalRunner
    from cotrail.engines.language_models.transformers.model import TransformersModel
    from cotrail.engines.language_models.transformers.request import Request

pytestmark = pytest.mark.usefixtures("transformers")

DEADLINE = 60.0
VOCABULARY = 320
CONTEXT = 1024
END = 0

LANDS = [("Paris", "France"), ("Oslo", "Norway"), ("Cairo", "Egypt"), ("Quito", "Ecuador"), ("Hanoi", "Vietnam")]


def demonstrations(lands: Sequence[tuple[str, str]] = LANDS) -> Demonstrations:
    return Demonstrations(
        items=tuple(
            Demonstration(
                id=name,
                paragraphs=(Paragraph(id=name, title=name, text=f"{name} is a city in {land}."),),
                question=f"In which land is {name}?",
                answer=f"{name} is a city in {land}. So the answer is: {land}.",
            )
            for name, land in lands
        )
    )


def prompt_for(name: str, paragraphs: int = 1, shown: Demonstrations | None = None) -> Prompt:
    facts = tuple(
        Paragraph(id=f"{name} {n}", title=f"{name} {n}", text=f"{name} {n} flows into the sea of {name[::-1]}.")
        for n in range(paragraphs)
    )
    return few_shot_prompt(
        demonstrations=shown or demonstrations(), paragraphs=facts, question=f"Where does the {name} flow?"
    )


PROMPTS = [prompt_for(name) for name in ("Vell", "Brenn", "Ostra", "Aune", "Selk")]


def save(path: Path, model: Any, *, endless: bool = False) -> Path:
    """Saves a model and a tokenizer of single bytes and some longer tokens.

    endless: the model hardly ever ends a line, nor writes what isn't ASCII.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([prompt.render() for prompt in PROMPTS], trainer)
    fast: Any = PreTrainedTokenizerFast
    fast(tokenizer_object=tokenizer, eos_token="</s>").save_pretrained(path)
    if endless:
        others = [number for token, number in tokenizer.get_vocab().items() if not token.isascii()]
        model.lm_head.weight.data[[END, *others]] = 0
    model.save_pretrained(path)
    return path


SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "eos_token_id": END,
    "bos_token_id": None,
    "pad_token_id": END,
    "initializer_range": 0.5,  # as far apart as trained ones, or all tokens would be about as likely
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two small models with random weights; the second one ends lines now and then."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
    torch.manual_seed(1)
    return {
        "llama": save(tmp_path_factory.mktemp("llama"), LlamaForCausalLM(LlamaConfig(**SIZES)), endless=True),
        "qwen2": save(tmp_path_factory.mktemp("qwen2"), Qwen2ForCausalLM(Qwen2Config(**SIZES))),
    }


Make = Callable[..., "TransformersModel"]


@pytest.fixture
def make_model(folders: dict[str, Path]) -> Iterator[Make]:
    from cotrail.engines.language_models.transformers.model import TransformersModel

    made = []

    def make(profile: Profile = "fast", slots: int = 1, context: int = CONTEXT) -> "TransformersModel":
        made.append(TransformersModel(folders["llama"], "tiny", profile, slots, context))
        return made[-1]

    yield make
    for model in made:
        model.interrupt()


def requests(model: Any, seed: int, count: int) -> "list[Request]":
    """Random prompts that begin alike in part, of one token up to several chunks, and of random lengths to write."""
    from cotrail.engines.language_models.transformers.request import Request

    chance = random.Random(seed)
    texts = [[chance.randrange(1, VOCABULARY) for _ in range(chance.choice([1, 3, 90, 600]))] for _ in range(3)]
    made = []
    for _ in range(count):
        tokens = [*chance.choice(texts), *(chance.randrange(1, VOCABULARY) for _ in range(chance.randrange(1, 60)))]
        made.append(Request(tokens, model.vocabulary, "line", chance.randrange(1, 40), Sampling(), len(tokens) // 2))
    return made


@pytest.mark.parametrize(("name", "slots"), [("llama", 1), ("llama", 5), ("qwen2", 3)])
def test_greedy_texts_are_those_of_transformers_whoever_else_is_written_for(
    folders: dict[str, Path], name: str, slots: int
) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    from cotrail.engines.language_models.transformers.causal import CausalRunner
    from cotrail.engines.language_models.transformers.model import load
    from cotrail.engines.language_models.transformers.scheduler import Scheduler

    loaded = load(folders[name])
    reference = AutoModelForCausalLM.from_pretrained(folders[name], dtype=torch.float32).to(loaded.model.device)
    scheduler = Scheduler(CausalRunner(loaded.model, "fast", slots, CONTEXT))
    asked = requests(loaded, seed=slots, count=24)
    for request in asked:
        scheduler.submit(request)
    for request in asked:
        request.future.result(DEADLINE)
        assert request.written == continuation(reference, request)[: len(request.written)]
    scheduler.interrupt()
    assert any(request.cached for request in asked)


def continuation(model: Any, request: "Request") -> list[int]:
    """What transformers' own greedy search writes."""
    import torch

    tokens = torch.tensor([request.tokens], device=model.device)
    most = request.max_tokens
    whole = model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=most, do_sample=False)
    written: list[int] = whole[0, len(request.tokens) :].tolist()
    return written


def test_guesses_save_passes_and_change_nothing(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from cotrail.engines.language_models.transformers.causal import CausalRunner
    from cotrail.engines.language_models.transformers.model import load
    from cotrail.engines.language_models.transformers.request import Request
    from cotrail.engines.language_models.transformers.scheduler import Scheduler

    loaded = load(folders["llama"])
    asked = [*requests(loaded, seed=7, count=12)]
    truth = {request.packed: continuation(loaded.model, request) for request in asked}
    chance = random.Random(7)

    def guess(request: "Request") -> list[int]:
        """Some of the tokens that will come, the last one as a rule wrong."""
        following = truth[request.packed][len(request.written) :][: chance.randrange(5)]
        return [*following, chance.randrange(VOCABULARY)]

    monkeypatch.setattr(Request, "draft", guess)
    engine = CausalRunner(loaded.model, "fast", 3, CONTEXT)
    scheduler = Scheduler(engine)
    for request in asked:
        scheduler.submit(request)
    for request in asked:
        request.future.result(DEADLINE)
        assert request.written == truth[request.packed][: len(request.written)]
        assert request.accepted <= min(request.drafted, len(request.written))
    scheduler.interrupt()
    assert sum(request.accepted for request in asked) > 30


def test_a_result_counts_what_was_read_and_written(make_model: Make) -> None:
    model = make_model()
    result = model.generate(GenerationRequest(PROMPTS[0], "line", 30))
    assert result.text == result.raw.strip()
    assert "\n" not in result.raw
    assert 0 < result.generated_tokens <= 30
    assert result.prompt_tokens == model.count_tokens(PROMPTS[0].render())
    assert result.prompt_digest == PROMPTS[0].digest
    assert (result.demonstrations, result.paragraphs, result.cached_prompt_tokens) == (len(LANDS), 1, 0)
    assert result.accepted_tokens <= result.drafted_tokens


def test_demonstrations_are_read_once_for_all_questions_even_of_those_that_come_together(make_model: Make) -> None:
    model = make_model(slots=4)
    shared = model.count_tokens(demonstrations().text)
    with ThreadPoolExecutor(5) as pool:
        results = list(pool.map(lambda prompt: model.generate(GenerationRequest(prompt, "line", 8)), PROMPTS))
    cached = sorted(result.cached_prompt_tokens for result in results)
    assert cached[0] == 0
    assert min(cached[1:]) >= shared - 1


def test_a_questions_next_step_goes_on_from_its_paragraphs(make_model: Make) -> None:
    model = make_model()
    read = 0
    for paragraphs in (1, 3, 5):
        steps = [prompt_for(name, paragraphs) for name in ("Vell", "Brenn")]
        results = [model.generate(GenerationRequest(prompt, "line", 8)) for prompt in steps]
        before = prompt_for("Vell", paragraphs - 2).render().partition("\n\nQ: Where does")[0]
        read = model.count_tokens(before) - 1
        assert paragraphs == 1 or min(result.cached_prompt_tokens for result in results) >= read
    assert read > model.count_tokens(demonstrations().text)


def test_demonstrations_of_one_kind_outlast_many_questions_of_another(make_model: Make) -> None:
    from cotrail.engines.language_models.transformers.causal import SPARE_ROWS

    model = make_model()
    other = demonstrations(LANDS[::-1])
    model.generate(GenerationRequest(prompt_for("Vell", shown=other), "line", 4))
    for n in range(2 * (1 + SPARE_ROWS)):
        model.generate(GenerationRequest(prompt_for(f"River {n}"), "line", 4))
    again = model.generate(GenerationRequest(prompt_for("Brenn", shown=other), "line", 4))
    assert again.cached_prompt_tokens >= model.count_tokens(other.text) - 1


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[Any]]:
    """The logits that each text's tokens were chosen by, under the length of its prompt."""
    from cotrail.engines.language_models.transformers.causal import CausalRunner

    logits: dict[int, list[Any]] = {}
    forward = CausalRunner._forward

    def noted(engine: "CausalRunner", feeds: Any, kept: int) -> Any:
        result = forward(engine, feeds, kept)
        for feed, row in zip(feeds, result, strict=True):
            if feed.whole:
                logits.setdefault(len(feed.slot.taken.tokens), []).append(row[-1].clone())
        return result

    monkeypatch.setattr(CausalRunner, "_forward", noted)
    return logits


def test_deterministic_results_are_the_same_to_the_last_bit_whatever_else_is_read(
    make_model: Make, seen: dict[int, list[Any]]
) -> None:
    import torch

    prompts = [prompt_for(name, count) for count, name in enumerate(["Vell", "Brenn", "Ostra", "Aune", "Selk"], 1)]
    model = make_model("deterministic", slots=4)

    def ask(prompt: Prompt, model: "TransformersModel" = model) -> tuple[str, int]:
        result = model.generate(GenerationRequest(prompt, "line", 24))
        return result.raw, result.prompt_tokens

    def logits(results: Sequence[tuple[str, int]]) -> list[Any]:
        found = [torch.stack(seen[tokens]) for _, tokens in results]
        seen.clear()
        return found

    alone = [ask(prompt, make_model("deterministic")) for prompt in prompts]
    expected = logits(alone)
    assert len({tokens for _, tokens in alone}) == len(prompts)
    for order in (prompts, prompts[::-1], prompts[2:] + prompts[:2]):
        for threads in (1, 5):
            with ThreadPoolExecutor(threads) as pool:
                results = sorted(pool.map(ask, order), key=lambda result: result[1])
            assert results == sorted(alone, key=lambda result: result[1])
            assert all(map(torch.equal, logits(results), sorted_by_length(alone, expected)))


def sorted_by_length(results: Sequence[tuple[str, int]], logits: Sequence[Any]) -> list[Any]:
    return [each for _, each in sorted(zip((tokens for _, tokens in results), logits, strict=True), key=lambda p: p[0])]


def test_deterministic_reading_reuses_whole_chunks(make_model: Make) -> None:
    model = make_model("deterministic")
    shared = model.count_tokens(demonstrations().text)
    assert shared > 2 * DETERMINISTIC_CHUNK_TOKENS
    first, *others = [model.generate(GenerationRequest(prompt, "line", 8)) for prompt in [*PROMPTS, PROMPTS[0]]]
    assert first.cached_prompt_tokens == 0
    for result in others:
        assert result.cached_prompt_tokens >= shared // DETERMINISTIC_CHUNK_TOKENS * DETERMINISTIC_CHUNK_TOKENS
        assert result.cached_prompt_tokens % DETERMINISTIC_CHUNK_TOKENS == 0
        assert result.drafted_tokens == 0


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_a_seed_decides_what_is_drawn_whatever_others_draw(make_model: Make, profile: Profile) -> None:
    model = make_model(profile, slots=3)

    def draw(seed: int) -> str:
        return model.generate(GenerationRequest(PROMPTS[0], "line", 16, Sampling(temperature=0.8, seed=seed))).raw

    alone = [draw(seed) for seed in range(6)]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(draw, range(6))) == alone
    assert len(set(alone)) > 1


def test_a_prompt_is_packed_into_the_context(make_model: Make) -> None:
    model = make_model(context=250)
    result = model.generate(GenerationRequest(PROMPTS[0], "line", 24))
    assert 0 < result.demonstrations < len(LANDS)
    assert result.prompt_tokens <= 250 - 24
    assert result.prompt_digest == PROMPTS[0].keep(result.demonstrations, 1).digest
    with pytest.raises(PromptTooLongError):
        model.generate(GenerationRequest(PROMPTS[0], "line", 249))


def test_what_does_not_fit_memory_in_one_pass_is_done_in_several(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from cotrail.engines.language_models.transformers.causal import CausalRunner
    from cotrail.engines.language_models.transformers.model import load
    from cotrail.engines.language_models.transformers.request import Request

    loaded = load(folders["llama"])
    passes = loaded.model.forward
    largest = 0

    def small(*args: Any, **kwargs: Any) -> Any:
        nonlocal largest
        rows = len(kwargs["input_ids"])
        if rows > 2 or kwargs["input_ids"].shape[1] > 400:
            raise torch.OutOfMemoryError("made up")
        largest = max(largest, rows)
        return passes(*args, **kwargs)

    engine = CausalRunner(loaded.model, "fast", 4, CONTEXT)
    monkeypatch.setattr(loaded.model, "forward", small)
    short = [Request([n, 7, 9], loaded.vocabulary, "line", 12, Sampling()) for n in range(1, 5)]
    long = Request([5] * 450, loaded.vocabulary, "line", 12, Sampling())
    engine.admit([*short[:3], long])
    while engine.busy:
        engine.step()
    assert [request.future.exception(0) for request in short[:3]] == [None] * 3
    assert isinstance(long.future.exception(0), TransientStepError)
    assert largest == 2


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_an_interrupt_ends_what_is_under_way_and_what_comes_later(
    make_model: Make, monkeypatch: pytest.MonkeyPatch, profile: Profile
) -> None:
    from cotrail.engines.language_models.transformers.causal import CausalRunner

    held = HeldUp(monkeypatch, CausalRunner, "_forward")
    model = make_model(profile)
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(model.generate, GenerationRequest(prompt, "line", 24)) for prompt in PROMPTS[:2]]
        assert held.begun.wait(DEADLINE)
        model.interrupt()
        held.go_on.set()
        assert [type(future.exception(DEADLINE)) for future in running] == [Interrupted, Interrupted]
    with pytest.raises(Interrupted):
        model.generate(GenerationRequest(PROMPTS[0], "line", 24))


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_one_generation_is_cut_off_and_the_others_write_what_they_would_have_written(
    make_model: Make, monkeypatch: pytest.MonkeyPatch, profile: Profile
) -> None:
    from cotrail.engines.language_models.transformers.causal import CausalRunner

    is_cut_off_alone(monkeypatch, make_model(profile, slots=2), PROMPTS, CausalRunner, "_forward")


def test_what_the_engine_does_not_know_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    from transformers import MistralConfig, MistralForCausalLM

    from cotrail.engines.language_models.transformers.model import TransformersModel

    with pytest.raises(InputError, match="takes 2048 tokens"):
        TransformersModel(folders["llama"], "tiny", "fast", 1, 2049)
    sliding = save(tmp_path, MistralForCausalLM(MistralConfig(**SIZES, sliding_window=64)))
    with pytest.raises(InputError, match="don't keep 65 tokens"):
        TransformersModel(sliding, "sliding", "fast", 1, 65)
    TransformersModel(sliding, "sliding", "fast", 1, 64).interrupt()


def test_what_is_no_model_is_named(tmp_path: Path) -> None:
    from cotrail.engines.language_models.transformers.model import TransformersModel

    with pytest.raises(InputError, match="can't be read"):
        TransformersModel(tmp_path / "nowhere", "broken", "fast", 1, 512)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="transformers can't load"):
        TransformersModel(tmp_path, "broken", "fast", 1, 512)


def test_weights_that_end_too_soon_are_named(folders: dict[str, Path], tmp_path: Path) -> None:
    from cotrail.engines.language_models.transformers.model import TransformersModel

    broken = Path(shutil.copytree(folders["llama"], tmp_path / "broken"))
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(InputError, match="transformers can't load"):
        TransformersModel(broken, "broken", "fast", 1, 512)


def test_an_identity_follows_every_file_of_a_model(folders: dict[str, Path], make_model: Make) -> None:
    before = make_model().identity
    assert before == model_identity("tiny", weights_digest(folders["llama"], CONTEXT, "transformers"))
    assert before.startswith("tiny@")
    assert make_model(context=512).identity != before
    (folders["llama"] / "README.md").write_text("A tiny model.")
    assert make_model().identity == before
    extra = folders["llama"] / "chat_template.jinja"
    extra.write_text("{{ messages }}")
    changed = make_model().identity
    extra.unlink()
    assert changed != before
