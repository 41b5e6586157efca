"""How likely each of several continuations is, as every engine tells it."""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from cotrail.core.demonstrations import Demonstrations
from cotrail.core.generation import Sampling
from cotrail.core.ports.cancellation import Interrupted
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel, Profile
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Paragraph
from cotrail.engines.language_models.llamacpp.model import LlamaCppModel
from cotrail.engines.language_models.llamacpp.server import LlamaCppStream
from cotrail.engines.language_models.scripted import ScriptedModel
from cotrail.errors import CotrailError, PromptTooLongError, StepError, TransientStepError
from cotrail.systems.parts.prompting import few_shot_prompt
from tests.integration.served import Served, answer, streamed

FACTS = ["Paris is the capital of France.", "The Vell flows into the Amber Sea.", "Bees die after they sting."] * 12
CHOICES = [" True", " Neither", " False"]
UNLIKELY = [" zebra", "\t", "Ω", " True"]
"""Choices that hardly ever follow, but for the last one."""


def text(facts: int = 1, claim: str = "Paris is in France.") -> str:
    return "\n".join(FACTS[:facts]) + f"\nQuestion: {claim} True, False, or Neither?\nAnswer:"


TEXTS = [text(1), text(9), text(30), text(30, "The Vell is a lake."), text(31), text(2, "Bees sting often.")]
"""Some of one batch and some of several, which begin alike."""

PROMPTS = [
    few_shot_prompt(
        demonstrations=Demonstrations(),
        paragraphs=tuple(Paragraph(id=str(n), title=f"T{n}", text=FACTS[n]) for n in range(count)),
        question="Where does the Vell flow?",
    )
    for count in (3, 12)
]

# llama.cpp

Open = Callable[..., LlamaCppModel]


def shares(logarithms: Sequence[float]) -> list[float]:
    exact = [math.exp(each - max(logarithms)) for each in logarithms]
    return [each / sum(exact) for each in exact]


class Everything(LlamaCppStream):
    """Takes the logarithms of the probabilities of the whole vocabulary."""

    def __init__(self) -> None:
        super().__init__("line", Event().is_set)
        self.likely: dict[int, float] = {}

    @property
    def asks(self) -> dict[str, Any]:
        return {"n_probs": 100_000}

    def take(self, chunk: Mapping[str, Any]) -> bool:
        for position in (chunk["choices"][0].get("logprobs") or {}).get("content", ()):
            self.likely = {each["id"]: each["logprob"] for each in position["top_logprobs"]}
        return super().take(chunk)


def of_all_tokens(model: LlamaCppModel, asked: str) -> dict[int, float]:
    """The logarithms of the whole vocabulary's probabilities, read as the profile reads."""
    server, stream = model._server, Everything()
    tokens = server.tokens(asked)
    if model._deterministic:
        model._deterministic.complete(tokens, 0, stream, 1, Sampling())
    else:
        server.complete(tokens, stream, 1, Sampling())
    assert len(stream.likely) > 40_000
    return stream.likely


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_llama_cpp_tells_what_its_whole_vocabulary_does_however_unlikely(smollm2: Open, profile: Profile) -> None:
    model = smollm2(profile)
    for asked, several in [(TEXTS[0], [CHOICES]), (TEXTS[1], [CHOICES, UNLIKELY, UNLIKELY[:2]])]:
        model.probabilities(asked, CHOICES)  # of what was read before, `fast` reads less, and that differs
        likely, length = of_all_tokens(model, asked), model.count_tokens(asked)
        for choices in several:
            told = model.probabilities(asked, choices)
            assert sum(told) == pytest.approx(1.0)
            firsts = [model._server.tokens(asked + choice)[length] for choice in choices]
            assert told == pytest.approx(shares([likely[first] for first in firsts]), rel=1e-4)
    assert model.probabilities(TEXTS[1], UNLIKELY)[-1] > 0.99


def test_the_order_of_the_choices_is_that_of_the_probabilities(shared_shallow: Open) -> None:
    model = shared_shallow("deterministic")
    told = model.probabilities(TEXTS[0], CHOICES)
    assert model.probabilities(TEXTS[0], CHOICES[::-1]) == told[::-1]
    assert len(set(told)) == 3
    assert model.probabilities(TEXTS[0], CHOICES[:1]) == (1.0,)


def test_deterministic_probabilities_have_the_same_bits_whatever_came_before(shallow: Open) -> None:
    model, chance = shallow("deterministic"), random.Random(3)
    tokens = [model.count_tokens(each) for each in TEXTS]
    assert min(tokens) < 128 < 256 < max(tokens)
    told: dict[str, set[tuple[float, ...]]] = {each: set() for each in TEXTS}
    for _ in range(2):
        for asked in chance.sample(TEXTS, len(TEXTS)):
            told[asked].add(model.probabilities(asked, CHOICES))
            if chance.random() < 0.4:
                model.generate(GenerationRequest(chance.choice(PROMPTS), "sentence", 6))
    with ThreadPoolExecutor(4) as pool:
        for asked, result in zip(TEXTS, pool.map(lambda each: model.probabilities(each, CHOICES), TEXTS), strict=True):
            told[asked].add(result)
    told[TEXTS[2]].add(shallow("deterministic").probabilities(TEXTS[2], CHOICES))
    assert [len(each) for each in told.values()] == [1] * len(TEXTS)
    assert len(set().union(*told.values())) == len(TEXTS)


def test_deterministic_texts_stay_the_same_with_probabilities_asked_for_in_between(shallow: Open) -> None:
    def write(model: LlamaCppModel, prompt: Prompt) -> str:
        return model.generate(GenerationRequest(prompt, "sentence", 16, Sampling(temperature=1.0, seed=5))).raw

    undisturbed, disturbed = shallow("deterministic"), shallow("deterministic")
    expected = [write(undisturbed, prompt) for prompt in (*PROMPTS, *PROMPTS)]
    written = []
    for prompt in (*PROMPTS, *PROMPTS):
        disturbed.probabilities(TEXTS[2], CHOICES)
        written.append(write(disturbed, prompt))
        disturbed.probabilities(prompt.render(), CHOICES)
    assert written == expected


def test_many_threads_are_told_what_one_is(shallow: Open) -> None:
    model = shallow(slots=3)
    alone = [model.probabilities(each, CHOICES) for each in TEXTS]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda each: model.probabilities(each, CHOICES), TEXTS))
    for one, other in zip(alone, together, strict=True):
        assert one == pytest.approx(other, abs=0.1)  # `fast` promises no bits


def test_a_text_fills_the_context_but_for_one_token(shallow: Open) -> None:
    exact = shallow().count_tokens(TEXTS[1])
    assert shallow(context=exact + 1).probabilities(TEXTS[1], CHOICES)
    with pytest.raises(PromptTooLongError, match=f"{exact + 1} tokens, and the context has room for {exact}"):
        shallow(context=exact).probabilities(TEXTS[1], CHOICES)


def test_choices_that_begin_alike_are_refused(shared_shallow: Open) -> None:
    model = shared_shallow()
    for choices in ([" True", " True enough"], [" True", " True"], [" True", ""]):
        with pytest.raises(StepError, match="don't tell apart how ' True'"):
            model.probabilities(TEXTS[0], choices)


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_an_interrupted_llama_cpp_tells_nothing(shallow: Open, profile: Profile) -> None:
    model = shallow(profile)
    model.interrupt()
    with pytest.raises(Interrupted):
        model.probabilities(TEXTS[0], CHOICES)


# transformers

OpenTiny = Callable[..., Any]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Small models with random weights, decoder-only and encoder-decoder."""
    torch = pytest.importorskip("torch", reason="PyTorch isn't installed")
    from transformers import LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration

    from tests.integration import test_transformers as causal
    from tests.integration import test_transformers_seq2seq as seq2seq

    torch.manual_seed(3)
    made = {kind: tmp_path_factory.mktemp(kind) for kind in ("llama", "t5")}
    causal.save(made["llama"], LlamaForCausalLM(LlamaConfig(**causal.SIZES)))
    tokens = seq2seq.tokenizer()
    tokens.save_pretrained(made["t5"])
    sizes: dict[str, Any] = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    config = T5Config(vocab_size=len(tokens), decoder_start_token_id=0, **sizes)
    model = T5ForConditionalGeneration(config)
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.5)  # as far apart as trained ones
    model.save_pretrained(made["t5"])
    return made


@pytest.fixture
def tiny(folders: dict[str, Path], transformers: None) -> Iterator[OpenTiny]:
    from cotrail.engines.language_models.transformers.model import TransformersModel

    made = []

    def open_(kind: str, profile: Profile = "fast", slots: int = 4, context: int = 1024) -> TransformersModel:
        made.append(TransformersModel(folders[kind], kind, profile, slots, context))
        return made[-1]

    yield open_
    for model in made:
        model.interrupt()


SHORT = [" the river", " sea", " into", "."]
"""Choices that a tokenizer of a few words takes apart as well."""


def by_the_model_itself(folder: Path, asked: str, choices: Sequence[str]) -> list[float]:
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer(asked)["input_ids"]
    with torch.inference_mode():
        if folder.name.startswith("t5"):
            model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32)
            begun = torch.tensor([[model.config.decoder_start_token_id]])
            logits = model(input_ids=torch.tensor([tokens]), decoder_input_ids=begun).logits[0, -1]
            firsts = [tokenizer(choice, add_special_tokens=False)["input_ids"][0] for choice in choices]
        else:
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
            logits = model(input_ids=torch.tensor([tokens])).logits[0, -1]
            firsts = [tokenizer(asked + choice)["input_ids"][len(tokens)] for choice in choices]
    return shares(logits[firsts].double().tolist())


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
@pytest.mark.parametrize("kind", ["llama", "t5"])
def test_transformers_tells_what_one_pass_of_the_model_does(
    tiny: OpenTiny, folders: dict[str, Path], kind: str, profile: Profile
) -> None:
    model = tiny(kind, profile)
    asked = [each.replace("\n", " ") for each in TEXTS]
    expected = [by_the_model_itself(folders[kind], each, SHORT) for each in asked]
    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(lambda each: model.probabilities(each, SHORT), asked))
    for one, other in zip(told, expected, strict=True):
        assert sum(one) == pytest.approx(1.0)
        assert one == pytest.approx(other, abs=1e-4)
    assert len({str(each) for each in told}) == len(asked)


@pytest.mark.parametrize("kind", ["llama", "t5"])
def test_deterministic_transformers_tells_the_same_bits_whatever_came_before(tiny: OpenTiny, kind: str) -> None:
    model, chance = tiny(kind, "deterministic"), random.Random(3)
    told: dict[str, set[tuple[float, ...]]] = {each: set() for each in TEXTS}
    for _ in range(3):
        for asked in chance.sample(TEXTS, len(TEXTS)):
            told[asked].add(model.probabilities(asked, SHORT))
            model.generate(GenerationRequest(chance.choice(PROMPTS), "line", 6, Sampling(temperature=1.0, seed=2)))
    for asked in TEXTS[:2]:
        told[asked].add(tiny(kind, "deterministic").probabilities(asked, SHORT))
    assert [len(each) for each in told.values()] == [1] * len(TEXTS)


def test_what_is_written_stays_the_same_with_probabilities_asked_for_meanwhile(tiny: OpenTiny) -> None:
    model = tiny("llama", slots=4)

    def write(seed: int) -> str:
        written: str = model.generate(
            GenerationRequest(PROMPTS[0], "line", 20, Sampling(temperature=1.0, seed=seed))
        ).raw
        return written

    alone = [write(seed) for seed in range(3)]
    with ThreadPoolExecutor(9) as pool:
        told = [pool.submit(model.probabilities, each, SHORT) for each in TEXTS]
        assert list(pool.map(write, range(3))) == alone
        assert all(len(each.result()) == len(SHORT) for each in told)


@pytest.mark.parametrize(("kind", "room"), [("llama", 1), ("t5", 0)])
def test_a_text_fills_the_context_of_a_model_of_transformers(tiny: OpenTiny, kind: str, room: int) -> None:
    exact = tiny(kind).count_tokens(TEXTS[0])
    assert tiny(kind, context=exact + room).probabilities(TEXTS[0], SHORT)
    with pytest.raises(PromptTooLongError):
        tiny(kind, context=exact + room - 1).probabilities(TEXTS[0], SHORT)


@pytest.mark.parametrize("kind", ["llama", "t5"])
def test_choices_that_begin_alike_are_refused_by_transformers(tiny: OpenTiny, kind: str) -> None:
    with pytest.raises(StepError, match="don't tell apart"):
        tiny(kind).probabilities(TEXTS[0], [" the", " the river"])


# Servers

OpenServed = Callable[..., LanguageModel]


def completion(likely: dict[str, float]) -> Any:
    """A stream whose only token is one of several, in the form of completions."""
    token = max(likely, key=lambda token: likely[token])
    logprobs = {"tokens": [token], "top_logprobs": [likely]}
    choice = {"index": 0, "text": token, "logprobs": logprobs, "finish_reason": "length"}
    return streamed([{"choices": [choice]}, "[DONE]"])


def chat(likely: dict[str, float]) -> Any:
    """The same in the form of chats."""
    tops = [{"token": token, "logprob": logprob, "bytes": []} for token, logprob in likely.items()]
    logprobs = {"content": [{**tops[0], "top_logprobs": tops}]}
    begun = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    said = {"index": 0, "delta": {"content": tops[0]["token"]}, "logprobs": logprobs, "finish_reason": None}
    ended = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "length"}
    return streamed([*({"choices": [each]} for each in (begun, said, ended)), "[DONE]"])


HALF, QUARTER, EIGHTH = math.log(0.5), math.log(0.25), math.log(0.125)


def test_a_server_is_asked_for_the_likeliest_tokens_of_a_completion(open_served: OpenServed, served: Served) -> None:
    served.replies = [completion({" True": HALF, " False": EIGHTH, " Neither": QUARTER, "\n": EIGHTH})]
    assert open_served(served.url).probabilities(TEXTS[0], CHOICES) == pytest.approx((4 / 7, 2 / 7, 1 / 7))
    body = served.generations[0].body
    assert (body["prompt"], body["max_tokens"], body["temperature"], body["logprobs"]) == (TEXTS[0], 1, 1.0, 5)
    served.tokenizer = answer(200, {"count": 3, "max_model_len": 4096, "tokens": [1, 2, 3]})
    assert open_served(served.url).probabilities(TEXTS[0], CHOICES[:2]) == pytest.approx((2 / 3, 1 / 3))
    assert served.generations[1].body["logprobs"] == 20  # as vLLM allows


def test_a_server_that_chats_may_leave_the_space_out(open_served: OpenServed, served: Served) -> None:
    served.replies = [
        chat({"True": QUARTER, " True": QUARTER, "Ne": QUARTER, "N": EIGHTH, "False": EIGHTH, "": EIGHTH})
    ]
    told = open_served(served.url, api="chat").probabilities(TEXTS[0], CHOICES)
    assert told == pytest.approx((4 / 7, 2 / 7, 1 / 7))
    body = served.generations[0].body
    assert (body["logprobs"], body["top_logprobs"], body["max_tokens"]) == (True, 20, 1)
    assert body["messages"][0]["content"].endswith(TEXTS[0])


@pytest.mark.parametrize(
    ("likely", "problem"),
    [
        (
            {" True": HALF, " False": QUARTER, "\n": EIGHTH},
            "returned 3 likely next tokens.*stands for ' Neither' alone",
        ),
        ({" T": HALF, " Neither": QUARTER, "alse": EIGHTH}, "stands for ' False' alone"),
        ({}, "returned 0 likely next tokens"),
    ],
)
def test_a_choice_that_is_not_among_the_likeliest_is_an_error(
    open_served: OpenServed, served: Served, likely: dict[str, float], problem: str
) -> None:
    silent = {"choices": [{"index": 0, "text": "x", "logprobs": None, "finish_reason": "length"}]}
    served.replies = [completion(likely) if likely else streamed([silent, "[DONE]"])]
    with pytest.raises(StepError, match=problem):
        open_served(served.url).probabilities(TEXTS[0], CHOICES)


def test_choices_that_share_their_only_token_are_an_error(open_served: OpenServed, served: Served) -> None:
    served.replies = [completion({" Tr": HALF, " False": QUARTER})]
    with pytest.raises(StepError, match="stands for ' True' alone"):
        open_served(served.url).probabilities(TEXTS[0], [" True", " Trout", " False"])


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (answer(400, {"error": {"message": "logprobs must be at most 1"}}), StepError),
        (answer(500, {"error": {"message": "oh"}}), TransientStepError),
        (streamed([{"choices": [{"text": "x", "logprobs": {"content": 3}, "finish_reason": "length"}]}]), StepError),
    ],
)
def test_a_server_s_refusal_is_the_step_s(
    open_served: OpenServed, served: Served, reply: Any, kind: type[CotrailError]
) -> None:
    served.replies = [reply]
    with pytest.raises(kind):
        open_served(served.url).probabilities(TEXTS[0], CHOICES)


def test_a_text_that_is_longer_than_a_server_s_context_is_not_sent(open_served: OpenServed, served: Served) -> None:
    with pytest.raises(PromptTooLongError):
        open_served(served.url, context=20).probabilities(TEXTS[0], CHOICES)
    assert not served.generations


def test_an_interrupt_ends_what_a_server_is_asked(open_served: OpenServed, served: Served) -> None:
    model = open_served(served.url)
    model.interrupt()
    with pytest.raises(Interrupted):
        model.probabilities(TEXTS[0], CHOICES)


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_a_server_of_llama_cpp_tells_what_llama_cpp_does(real: OpenServed, shared_smollm2: Open, api: str) -> None:
    told = real(api=api).probabilities(TEXTS[0], CHOICES)
    assert sum(told) == pytest.approx(1.0)
    if api == "completions":
        assert told == pytest.approx(shared_smollm2().probabilities(TEXTS[0], CHOICES), abs=1e-3)


# Scripts


def scripted(table: Mapping[str, Sequence[float]] | None, context: int = 100) -> ScriptedModel:
    script: dict[str, object] = {"name": "s", "questions": {}, "context": context}
    return ScriptedModel(script | ({} if table is None else {"probabilities": table}))


def test_a_script_weighs_choices_by_the_longest_piece_of_the_text() -> None:
    model = scripted({"": (1, 1), "Vell": (3, 1), "Vell is": (1, 4)})
    assert model.probabilities("Oslo", CHOICES[:2]) == (0.5, 0.5)
    assert model.probabilities("The Vell flows", CHOICES[:2]) == (0.75, 0.25)
    assert model.probabilities("The Vell is long", CHOICES[:2]) == (0.2, 0.8)
    assert scripted(None).probabilities("Oslo", "abcd") == (0.25,) * 4


def test_a_script_that_weighs_other_choices_fails() -> None:
    with pytest.raises(StepError, match="s has 2 probabilities for 3 choices"):
        scripted({"": (1, 1)}).probabilities("Oslo", CHOICES)
    with pytest.raises(PromptTooLongError):
        scripted(None, context=3).probabilities("one two three", CHOICES)


def test_a_script_s_probabilities_are_part_of_its_identity_once_it_has_them() -> None:
    tables: list[Mapping[str, Sequence[float]] | None] = [None, {}, {"": (1, 1)}, {"": (1, 2)}]
    assert len({scripted(table).identity for table in tables}) == 4


def test_an_interrupted_script_tells_nothing() -> None:
    model = scripted(None)
    model.interrupt()
    with pytest.raises(Interrupted):
        model.probabilities("Oslo", CHOICES)
