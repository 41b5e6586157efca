import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.common.sentence_boundaries import first_sentence
from cotrail.core.demonstrations import Demonstrations
from cotrail.core.generation import Sampling
from cotrail.core.ports.language_model import GenerationRequest, Profile
from cotrail.core.prompts import Prompt, user
from cotrail.core.questions import Paragraph
from cotrail.errors import InputError, StepError, TransientStepError
from cotrail.systems.parts.prompting import few_shot_prompt
from tests.integration.holding import is_cut_off_alone
from tests.integration.transformers_models import Make, maker

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from cotrail.engines.language_models.transformers.model import Loaded, TransformersModel
    from cotrail.engines.language_models.transformers.request import Request
    from cotrail.engines.language_models.transformers.vocabulary import Vocabulary

DEADLINE = 60.0
pytestmark = pytest.mark.usefixtures("transformers")

CONTEXT = 256
END = 1

WORDS = ["Vell", "Brenn", "Ostra", "Holm", "flows", "into", "the", "sea", "is", "of", "was", "built", "in", "river"]
ENDS = [f"{word}." for word in WORDS[:4]]
CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ:.?"


def prompt_for(name: str, paragraphs: int = 1) -> Prompt:
    facts = tuple(
        Paragraph(id=f"{name} {n}", title=name, text=f"the {name} flows into the sea of Holm.")
        for n in range(paragraphs)
    )
    return few_shot_prompt(demonstrations=Demonstrations(), paragraphs=facts, question=f"Where flows the {name}?")


PROMPTS = [prompt_for(name, paragraphs) for name in WORDS[:4] for paragraphs in (1, 2, 4)]


def tokenizer() -> "PreTrainedTokenizerFast":
    """Pieces as T5 has them: words with the space before them, and characters."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces = [*((f"▁{word}", -2.0) for word in [*WORDS, *ENDS]), ("▁", -4.0), *((c, -6.0) for c in CHARACTERS)]
    made = Tokenizer(models.Unigram([*special, *pieces], unk_id=2))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", END)])
    names = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)  # type: ignore[no-untyped-call, unused-ignore]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model with random weights, built as Flan-T5 is."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
    path = tmp_path_factory.mktemp("t5")
    tokens = tokenizer()
    tokens.save_pretrained(path)
    sizes: dict[str, Any] = {
        "vocab_size": len(tokens) + 2,  # as in T5, a few have no piece
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 64,
        "num_layers": 2,
        "num_heads": 4,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
        "decoder_start_token_id": 0,
    }
    torch.manual_seed(2)
    model = T5ForConditionalGeneration(T5Config(**sizes))
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(
                weight, std=0.5
            )  # as far apart as trained ones, or all tokens would be about as likely
    model.save_pretrained(path)
    return path


@pytest.fixture
def make_model(folder: Path) -> Iterator[Make]:
    with maker(folder, "tiny", CONTEXT) as make:
        yield make


def requests(loaded: "Loaded", seed: int, count: int, longest: int = 40) -> "list[Request]":
    """Random prompts of few and of many tokens, and of random lengths to write."""
    from cotrail.engines.language_models.transformers.request import Request

    chance = random.Random(seed)
    made = []
    for _ in range(count):
        tokens = [chance.randrange(3, 60) for _ in range(chance.choice([2, 30, 120]) + chance.randrange(20))]
        made.append(Request([*tokens, END], loaded.vocabulary, "line", chance.randrange(1, longest), Sampling()))
    return made


def again(request: "Request", vocabulary: "Vocabulary") -> "Request":
    from cotrail.engines.language_models.transformers.request import Request

    return Request(request.tokens, vocabulary, request.until, request.max_tokens, request.sampling)


Write = Callable[[Sequence["Request"]], list[list[int]]]


@pytest.fixture
def make_writer(loaded: "Loaded") -> Iterator[Callable[..., Write]]:
    """Has an engine of its own write behind each of some prompts, as often as it is called."""
    from cotrail.engines.language_models.transformers.scheduler import Scheduler
    from cotrail.engines.language_models.transformers.seq2seq import Seq2SeqRunner

    schedulers = []

    def make(profile: Profile = "fast", slots: int = 8) -> Write:
        scheduler = Scheduler(Seq2SeqRunner(loaded.model, profile, slots, CONTEXT))
        schedulers.append(scheduler)

        def write(asked: "Sequence[Request]") -> list[list[int]]:
            for request in asked:
                scheduler.submit(request)
            for request in asked:
                request.future.result(timeout=DEADLINE)
            return [request.written for request in asked]

        return write

    yield make
    for scheduler in schedulers:
        scheduler.interrupt()


def expected(loaded: "Loaded", request: "Request") -> list[int]:
    """What transformers writes by itself."""
    import torch

    with torch.inference_mode():
        written = loaded.model.generate(
            torch.tensor([request.tokens]), max_new_tokens=request.max_tokens, do_sample=False
        )
    tokens: list[int] = written[0][1:].tolist()
    return tokens


def sizes_of_passes(model: Any) -> tuple[list[int], Any]:
    """A list that every pass of the decoder adds its number of rows to, and the handle that ends it."""
    sizes: list[int] = []
    handle = model.lm_head.register_forward_hook(lambda _, inputs, __: sizes.append(len(inputs[0])))
    return sizes, handle


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_one_generation_is_cut_off_and_the_others_write_what_they_would_have_written(
    make_model: Make, monkeypatch: pytest.MonkeyPatch, profile: Profile
) -> None:
    from cotrail.engines.language_models.transformers.seq2seq import Seq2SeqRunner

    is_cut_off_alone(monkeypatch, make_model(profile, slots=2), PROMPTS, Seq2SeqRunner, "_pass")


@pytest.mark.parametrize("slots", [1, 3, 8])
def test_greedy_texts_are_those_of_transformers_whoever_else_is_written_for(
    loaded: "Loaded", make_writer: Callable[..., Write], slots: int
) -> None:
    from cotrail.engines.language_models.transformers.seq2seq import COLUMNS

    asked = requests(loaded, seed=1, count=12)
    asked[4].max_tokens = COLUMNS + 60  # so long that the columns are moved
    texts = [expected(loaded, request) for request in asked]
    assert max(len(text) for text in texts) > COLUMNS
    assert sum(len(set(text)) for text in texts) / len(texts) > 6  # they don't merely repeat a token
    write = make_writer(slots=slots)
    assert write(asked) == texts
    assert write([again(request, loaded.vocabulary) for request in reversed(asked)]) == texts[::-1]


def test_deterministic_results_are_the_same_to_the_last_bit_whatever_else_is_asked(
    loaded: "Loaded", make_writer: Callable[..., Write]
) -> None:
    from cotrail.engines.language_models.transformers.seq2seq import COLUMNS

    logits: list[bytes] = []
    handle = loaded.model.lm_head.register_forward_hook(lambda *call: logits.append(call[2].numpy().tobytes()))
    asked = requests(loaded, seed=5, count=6)
    asked[2].max_tokens = COLUMNS + 60

    def bits(write: Write, order: Sequence[int]) -> dict[int, list[bytes]]:
        logits.clear()
        texts = write([again(asked[n], loaded.vocabulary) for n in order])
        return {n: [logits.pop(0) for _ in text] for n, text in zip(order, texts, strict=True)}

    order = list(range(len(asked)))
    write = make_writer("deterministic")
    first = bits(write, order)
    assert bits(write, order[::-1]) == first
    alone = [bits(make_writer("deterministic"), [n]) for n in order[:2]]
    handle.remove()
    assert [entry[n] for n, entry in enumerate(alone)] == [first[n] for n in order[:2]]


def test_finished_rows_leave_and_the_rest_is_written_together(loaded: "Loaded") -> None:
    from cotrail.engines.language_models.transformers.request import Request
    from cotrail.engines.language_models.transformers.seq2seq import Seq2SeqRunner
    from cotrail.engines.language_models.transformers.vocabulary import Vocabulary

    endless = Vocabulary(tokenizer(), ())
    asked = [Request([*range(5, 25), END], endless, "line", length, Sampling()) for length in (1, 3, 6, 2)]
    engine = Seq2SeqRunner(loaded.model, "fast", 4, CONTEXT)
    engine.admit(asked)
    assert engine.room() == 0
    sizes, handle = sizes_of_passes(loaded.model)
    rooms = []
    while engine.busy:
        engine.step()
        rooms.append(engine.room())
    handle.remove()
    assert sizes == [4, 3, 2, 1, 1, 1]
    assert rooms == [2, 3, 3, 3, 4]
    assert all(request.future.done() for request in asked)


def test_a_text_joins_others_that_are_being_written(loaded: "Loaded") -> None:
    from cotrail.engines.language_models.transformers.request import Request
    from cotrail.engines.language_models.transformers.seq2seq import Seq2SeqRunner
    from cotrail.engines.language_models.transformers.vocabulary import Vocabulary

    endless = Vocabulary(tokenizer(), ())
    early, late = (Request([*range(5, 25), END], endless, "line", length, Sampling()) for length in (8, 5))
    engine = Seq2SeqRunner(loaded.model, "fast", 2, CONTEXT)
    sizes, handle = sizes_of_passes(loaded.model)
    engine.admit([early])
    engine.step()
    engine.admit([late])
    while engine.busy:
        engine.step()
    handle.remove()
    assert sizes == [1, 1, 1, 2, 2, 2, 2, 1, 1]
    assert early.written[:5] == late.written


def test_a_sentence_ends_where_a_longer_text_has_its_first_one(make_model: Make) -> None:
    model = make_model(slots=4)
    whole = [model.generate(GenerationRequest(prompt, "line", 120)) for prompt in PROMPTS]
    sentences = [model.generate(GenerationRequest(prompt, "sentence", 120)) for prompt in PROMPTS]
    assert [result.text for result in sentences] == [first_sentence(result.raw) for result in whole]
    early = [result for result in sentences if result.generated_tokens < 100]
    assert len(early) > len(PROMPTS) / 2
    assert all(len(result.raw) - len(result.text) < 40 for result in early)


def test_what_many_threads_ask_at_once_is_what_one_asks(make_model: Make) -> None:
    alone, shared = make_model(slots=1), make_model(slots=5)

    def ask(model: "TransformersModel", prompt: Prompt) -> str:
        return model.generate(GenerationRequest(prompt, "sentence", 40)).raw

    with ThreadPoolExecutor(max_workers=12) as threads:
        together = list(threads.map(lambda prompt: ask(shared, prompt), PROMPTS * 3))
    assert together == [ask(alone, prompt) for prompt in PROMPTS] * 3


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_a_seed_decides_what_is_drawn_whatever_others_draw(make_model: Make, profile: Profile) -> None:
    model = make_model(profile, slots=6)

    def draw(seed: int) -> str:
        return model.generate(GenerationRequest(PROMPTS[0], "line", 20, Sampling(temperature=2.0, seed=seed))).raw

    alone = [draw(seed) for seed in range(6)]
    with ThreadPoolExecutor(max_workers=6) as threads:
        assert list(threads.map(draw, range(6))) == alone
    assert len(set(alone)) == 6


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_texts_of_one_batch_end_are_restricted_and_are_scored_each_in_its_own_way(
    make_model: Make, loaded: "Loaded", profile: Profile
) -> None:
    import torch

    from cotrail.engines.language_models.transformers.request import Request

    model = make_model(profile, slots=4)
    whole = model.generate(GenerationRequest(PROMPTS[0], "stop", 24)).raw
    requests = [
        GenerationRequest(PROMPTS[0], "stop", 24, scored=True),
        GenerationRequest(PROMPTS[0], "stop", 24, stop=(whole[3:6],)),
        GenerationRequest(PROMPTS[0], "stop", 24, Sampling(temperature=1.0, seed=1, top_k=3, top_p=0.9), scored=True),
        GenerationRequest(PROMPTS[0], "stop", 24, Sampling(repetition_penalty=2.0)),
    ]
    with ThreadPoolExecutor(4) as pool:
        scored, stopped, drawn, penalized = pool.map(model.generate, requests)
    assert (scored.raw, stopped.text) == (whole, whole[: whole.index(whole[3:6])])
    assert (stopped.ended, stopped.stop) == ("stop", whole[3:6])
    assert penalized.raw != whole
    assert "".join(text for text, _ in drawn.tokens) == drawn.raw
    tokens = [*loaded.vocabulary.encode(PROMPTS[0].render())]
    written = expected(loaded, Request(tokens, loaded.vocabulary, "stop", 24, Sampling()))
    with torch.inference_mode():
        shown = torch.tensor([[loaded.model.generation_config.decoder_start_token_id, *written]])
        logits = loaded.model(input_ids=torch.tensor([tokens]), decoder_input_ids=shown).logits[0]
    likely = torch.log_softmax(logits, dim=-1)
    by_itself = [float(likely[place, token]) for place, token in enumerate(written) if token != END]
    assert [score for _, score in scored.tokens] == pytest.approx(by_itself, abs=1e-3)


def test_a_conversation_is_refused(make_model: Make) -> None:
    with pytest.raises(StepError, match="takes no conversations"):
        make_model().generate(GenerationRequest(Prompt(turns=(user("Where?"),)), "stop", 9))


def test_the_context_counts_the_prompt_alone(make_model: Make) -> None:
    context = make_model().count_tokens(prompt_for("Vell", paragraphs=3).render()) + 2
    model = make_model(context=context)
    results = [
        model.generate(GenerationRequest(prompt_for(name, paragraphs=12), "line", 2 * context)) for name in WORDS[:4]
    ]
    assert {result.paragraphs for result in results} == {3}
    assert all(result.prompt_tokens <= context for result in results)
    assert max(result.prompt_tokens + result.generated_tokens for result in results) > context


def test_what_does_not_fit_memory_in_one_pass_is_done_in_several(
    loaded: "Loaded", make_writer: Callable[..., Write], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from cotrail.engines.language_models.transformers.request import Request

    asked = [
        *requests(loaded, seed=9, count=6),
        *(Request([7] * n, loaded.vocabulary, "line", 9, Sampling()) for n in (9,) * 4),
    ]
    texts = [expected(loaded, request) for request in asked]
    forward, refused = loaded.model.forward, set()

    def cramped(**inputs: Any) -> Any:
        if len(inputs["decoder_input_ids"]) > 2:
            refused.add("input_ids" in inputs)
            raise torch.OutOfMemoryError
        return forward(**inputs)

    monkeypatch.setattr(loaded.model, "forward", cramped)
    assert make_writer()(asked) == texts
    assert refused == {True, False}  # prompts to be read and texts to be written


def test_a_prompt_that_does_not_fit_even_alone_fails_alone(
    loaded: "Loaded", make_writer: Callable[..., Write], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from cotrail.engines.language_models.transformers.request import Request

    short, long = (Request([7] * count, loaded.vocabulary, "line", 9, Sampling()) for count in (50, 52))
    text = expected(loaded, short)
    forward = loaded.model.forward

    def cramped(**inputs: Any) -> Any:
        if inputs["attention_mask"].shape[1] > 50:
            raise torch.OutOfMemoryError
        return forward(**inputs)

    monkeypatch.setattr(loaded.model, "forward", cramped)
    write = make_writer()
    with pytest.raises(TransientStepError, match="too little memory"):
        write([short, long])
    assert short.written == text
    assert write([again(short, loaded.vocabulary)]) == [text]


def test_a_failed_pass_fails_its_texts_and_the_engine_goes_on(
    loaded: "Loaded", make_writer: Callable[..., Write], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = requests(loaded, seed=3, count=6, longest=20)
    texts = [expected(loaded, request) for request in asked]
    write = make_writer(slots=6)

    def broken(**_: Any) -> Any:
        raise ValueError("a kernel failed")

    with monkeypatch.context() as patch:
        patch.setattr(loaded.model, "forward", broken)
        with pytest.raises(TransientStepError, match="a kernel failed"):
            write([again(request, loaded.vocabulary) for request in asked])
    assert write(asked) == texts


@given(st.lists(st.integers(1, 300), min_size=1, max_size=20), st.integers(1, 1000))
def test_company_takes_the_first_prompt_and_pads_little(lengths: list[int], budget: int) -> None:
    from cotrail.engines.language_models.transformers.request import Request
    from cotrail.engines.language_models.transformers.seq2seq import MOST_PADDING, length_group
    from cotrail.engines.language_models.transformers.vocabulary import Vocabulary

    vocabulary = Vocabulary(tokenizer(), ())
    waiting = [Request([3] * length, vocabulary, "line", 1, Sampling()) for length in lengths]
    group = length_group(waiting, budget)
    sizes = [len(request.tokens) for request in group]
    padded = max(sizes) * len(sizes)
    assert group[0] is waiting[0]
    assert len({id(request) for request in group}) == len(group)
    assert len(group) == 1 or padded <= budget
    assert padded - sum(sizes) <= MOST_PADDING * padded + 1e-9
    twins = lengths.count(lengths[0])
    assert sizes.count(lengths[0]) == min(twins, max(1, budget // lengths[0]))


def test_models_that_know_tokens_by_their_places_are_refused(tmp_path: Path) -> None:
    from transformers import BartConfig, BartForConditionalGeneration

    from cotrail.engines.language_models.transformers.model import TransformersModel

    sizes: dict[str, Any] = {"vocab_size": 90, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1}
    sizes |= {f"{half}_{part}": 2 for half in ("encoder", "decoder") for part in ("attention_heads", "ffn_dim")}
    BartForConditionalGeneration(BartConfig(**sizes)).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    with pytest.raises(InputError, match="bart isn't supported"):
        TransformersModel(tmp_path, "bart", "fast", 1, 64)


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_one_of_several_words_is_written_beside_texts_that_stay_the_same(make_model: Make, profile: Profile) -> None:
    words = ("the sea of Holm", "Brenn", "abc")
    asked: list[tuple[str, ...]] = [(), words, (), words[1:]]
    requests = [
        GenerationRequest(prompt, "line", 20, choices=choices)
        for prompt, choices in zip(PROMPTS[:4], asked, strict=True)
    ]
    alone = make_model(profile)
    expected = [alone.generate(request).raw for request in requests]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(make_model(profile, slots=4).generate, requests))
    assert [result.raw for result in results] == expected
    assert results[1].text in words
    assert results[3].text in words[1:]


def test_json_that_its_vocabulary_cannot_write_harms_nobody(make_model: Make) -> None:
    model = make_model()
    free = model.generate(GenerationRequest(PROMPTS[0], "line", 20))
    assert model.generate(GenerationRequest(PROMPTS[0], "line", 20, schema='{"type": "object"}')).generated_tokens > 1
    assert model.generate(GenerationRequest(PROMPTS[0], "line", 20)).raw == free.raw
