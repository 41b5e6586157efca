import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cotrail.core.demonstrations import Demonstration, Demonstrations
from cotrail.core.generation import Sampling, Until
from cotrail.core.ports.cancellation import Cancellation, Interrupted
from cotrail.core.ports.language_model import GenerationRequest, Profile
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Paragraph
from cotrail.engines.language_models.catalogue import find_model, identity, open_model
from cotrail.engines.language_models.llamacpp.deterministic import BATCH_TOKENS
from cotrail.engines.language_models.llamacpp.model import SPARE_SLOTS, LlamaCppModel
from cotrail.engines.language_models.llamacpp.server import LlamaCppStream
from cotrail.errors import InputError, PromptTooLongError, StepError, TransientStepError
from cotrail.systems.parts.prompting import few_shot_prompt

DEADLINE = 60.0

FACTS = {
    "Which sea does the Vell flow into?": ("Vell", "The Vell is a river of Ostmark. It flows into the Amber Sea."),
    "Who built the tower of Brenn?": ("Brenn", "The tower of Brenn was built in 1431 by Dr. J. K. Holm."),
    "What is the capital of Ostmark?": ("Ostmark", "Ostmark is a country. Its capital is Brenn."),
    "When was the Amber Bridge opened?": ("Amber Bridge", "The Amber Bridge was opened on 3 May 1902."),
}

DEMONSTRATIONS = Demonstrations(
    items=tuple(
        Demonstration(
            id=str(number),
            paragraphs=(Paragraph(id=str(number), title=name, text=f"{name} is a city in {land}."),),
            question=f"In which land is {name}?",
            answer=f"{name} is a city in {land}. So the answer is: {land}.",
        )
        for number, (name, land) in enumerate([("Paris", "France"), ("Oslo", "Norway"), ("Cairo", "Egypt")])
    )
)

Make = Callable[..., LlamaCppModel]


def prompt_for(question: str, demonstrations: Demonstrations = DEMONSTRATIONS) -> Prompt:
    title, text = FACTS[question]
    paragraph = Paragraph(id=title, title=title, text=text)
    return few_shot_prompt(demonstrations=demonstrations, paragraphs=(paragraph,), question=question)


PROMPTS = [prompt_for(question) for question in FACTS]


def test_a_sentence_and_a_line_are_written_and_counted(shared_smollm2: Make) -> None:
    model = shared_smollm2()
    sentence = model.generate(GenerationRequest(PROMPTS[2], "sentence", 40))
    assert "\n" not in sentence.text
    assert sentence.raw.lstrip().startswith(sentence.text)
    assert 0 < sentence.generated_tokens <= 40
    assert sentence.prompt_tokens == model.count_tokens(PROMPTS[2].render())
    assert sentence.prompt_digest == PROMPTS[2].digest
    assert (sentence.demonstrations, sentence.paragraphs) == (3, 1)
    line = model.generate(GenerationRequest(PROMPTS[2], "line", 40))
    assert line.text == line.raw.strip()
    assert "\n" not in line.text
    assert line.text.startswith(sentence.text)
    assert line.generated_tokens >= sentence.generated_tokens - 2


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_a_chain_is_written_over_its_lines_up_to_the_next_demonstration(shared_smollm2: Make, profile: Profile) -> None:
    model = shared_smollm2(profile)
    whole = model.generate(GenerationRequest(PROMPTS[2], "end", 60))
    chain = model.generate(GenerationRequest(PROMPTS[2], "chain", 60))
    marks = ("\nQ:", "\nWikipedia Title:")
    assert any(mark in whole.text for mark in marks)
    assert whole.text.startswith(chain.text)
    assert (chain.ended, not any(mark in chain.text for mark in marks)) == ("until", True)
    assert chain.generated_tokens < whole.generated_tokens


LONG = tuple(
    Demonstrations(
        items=tuple(replace(each, id=f"{each.id}/{n}") for n in range(copies) for each in DEMONSTRATIONS.items)
    )
    for copies in (4, 7)
)
"""Demonstrations of several batches, the first of them the beginning of the others."""

DETERMINISTIC = [prompt_for(question, shots) for shots in LONG for question in list(FACTS)[:2]]

Written = tuple[str, str, int, int]


def written(model: LlamaCppModel, prompt: Prompt) -> Written:
    result = model.generate(GenerationRequest(prompt, "sentence", 24))
    return result.text, result.raw, result.generated_tokens, result.prompt_tokens


def test_the_same_prompt_gives_the_same_bytes_whatever_came_before(shallow: Make) -> None:
    model = shallow("deterministic", slots=4)
    seen: dict[str, set[Written]] = {}
    for prompts in (DETERMINISTIC, DETERMINISTIC[::-1]):
        for prompt in prompts:
            seen.setdefault(prompt.digest, set()).add(written(model, prompt))
    with ThreadPoolExecutor(4) as pool:
        asked = DETERMINISTIC[1:3]
        for prompt, bytes_ in zip(asked, pool.map(partial(written, model), asked), strict=True):
            seen[prompt.digest].add(bytes_)
    seen[DETERMINISTIC[-1].digest].add(written(shallow("deterministic"), DETERMINISTIC[-1]))
    assert [len(each) for each in seen.values()] == [1] * len(DETERMINISTIC)


def test_what_was_read_before_is_not_read_again_in_whole_batches(shallow: Make) -> None:
    model = shallow("deterministic")
    shared = model.count_tokens(LONG[1].text)
    assert shared > 3 * BATCH_TOKENS
    first, *others = [model.generate(GenerationRequest(prompt, "sentence", 24)) for prompt in DETERMINISTIC[2:]]
    assert first.cached_prompt_tokens == 0
    for result in others:
        assert shared - BATCH_TOKENS <= result.cached_prompt_tokens < result.prompt_tokens
        assert result.cached_prompt_tokens % BATCH_TOKENS == 0


def test_a_seed_decides_what_is_drawn(shared_shallow: Make) -> None:
    model = shared_shallow("deterministic")

    def draw(seed: int) -> str:
        return model.generate(GenerationRequest(PROMPTS[0], "line", 24, Sampling(temperature=1.5, seed=seed))).raw

    assert draw(3) == draw(3)
    assert len({draw(seed) for seed in range(3)}) > 1


def test_once_each_slot_has_read_the_demonstrations_no_question_has_them_read_again(shallow: Make) -> None:
    model = shallow()
    slots = 1 + SPARE_SLOTS
    for prompt in PROMPTS[:slots]:
        model.generate(GenerationRequest(prompt, "sentence", 24))
    shared = model.count_tokens("\n\n\n".join(d.render() for d in DEMONSTRATIONS.items))
    assert len(PROMPTS) > slots
    for prompt in PROMPTS[slots:]:
        assert model.generate(GenerationRequest(prompt, "sentence", 24)).cached_prompt_tokens >= shared


def test_prompts_of_two_kinds_take_turns_in_one_slot_and_keep_their_prefixes(shallow: Make) -> None:
    model = shallow()
    other = Demonstrations(items=tuple(replace(d, answer="It is so.") for d in DEMONSTRATIONS.items[::-1]))
    kinds = [DEMONSTRATIONS, other]
    shared = [model.count_tokens("\n\n\n".join(d.render() for d in kind.items)) for kind in kinds]
    cached = [
        [
            model.generate(GenerationRequest(prompt_for(question, kind), "line", 24)).cached_prompt_tokens
            for kind in kinds
        ]
        for question in FACTS
    ]
    assert all(tokens >= least for turn in cached[1:] for tokens, least in zip(turn, shared, strict=True))


def test_many_threads_work_on_several_slots_with_the_whole_context_each(shallow: Make) -> None:
    model = shallow(slots=2, context=240)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda p: model.generate(GenerationRequest(p, "sentence", 24)), PROMPTS * 2))
    assert all(result.text and result.demonstrations == 3 for result in results)
    assert all(result.prompt_tokens > 240 / 2 for result in results)


def test_a_prompt_is_packed_into_the_context(shallow: Make) -> None:
    model = shallow(context=150)
    result = model.generate(GenerationRequest(PROMPTS[0], "sentence", 24))
    assert 0 < result.demonstrations < 3
    assert result.prompt_tokens <= 150 - 24
    assert result.prompt_digest == PROMPTS[0].keep(result.demonstrations, 1).digest
    with pytest.raises(PromptTooLongError):
        model.generate(GenerationRequest(PROMPTS[0], "sentence", 149))


@pytest.mark.parametrize("until", ["sentence", "line"])
@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_a_line_break_before_any_word_ends_what_is_written_at_once(
    shared_smollm2: Make, profile: Profile, until: Until
) -> None:
    demonstration = Demonstration(id="0", paragraphs=(), question="a", answer="\n\nQ: a\nA:" * 30)
    prompt = few_shot_prompt(demonstrations=Demonstrations(items=(demonstration,)), question="a")
    result = shared_smollm2(profile).generate(GenerationRequest(prompt, until, 8))
    assert result.text == result.raw.strip() == ""
    assert result.generated_tokens <= 2


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_an_interrupt_ends_what_is_under_way_and_what_comes_later(
    shallow: Make, monkeypatch: pytest.MonkeyPatch, profile: Profile
) -> None:
    begun = threading.Event()
    take = LlamaCppStream.take

    def noticed(stream: LlamaCppStream, chunk: dict[str, Any]) -> bool:
        begun.set()
        return take(stream, chunk)

    monkeypatch.setattr(LlamaCppStream, "take", noticed)
    model = shallow(profile, context=8192)
    item = Demonstration(id="long", paragraphs=(), question="Who?", answer="word and word " * 400)
    prompt = prompt_for("What is the capital of Ostmark?", Demonstrations(items=(item,) * 5))
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(model.generate, GenerationRequest(prompt, "sentence", 24)) for _ in range(2)]
        assert begun.wait(DEADLINE)
        model.interrupt()
        assert [type(future.exception(DEADLINE)) for future in running] == [Interrupted, Interrupted]
    with pytest.raises(Interrupted):
        model.generate(GenerationRequest(prompt, "sentence", 24))


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_one_generation_is_cut_off_and_the_others_write_what_they_would_have_written(
    shallow: Make, monkeypatch: pytest.MonkeyPatch, profile: Profile
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    take = LlamaCppStream.take

    def noticed(stream: LlamaCppStream, chunk: dict[str, Any]) -> bool:
        begun.set()
        assert go_on.wait(DEADLINE)
        return take(stream, chunk)

    model = shallow(profile, slots=2, context=2048)
    before = [model.generate(GenerationRequest(prompt, "line", 24)).raw for prompt in PROMPTS]
    monkeypatch.setattr(LlamaCppStream, "take", noticed)
    cancellation = Cancellation()
    with ThreadPoolExecutor(4) as pool:
        cut = pool.submit(model.generate, GenerationRequest(PROMPTS[0], "line", 400), cancellation)
        assert begun.wait(DEADLINE)
        others = [pool.submit(model.generate, GenerationRequest(prompt, "line", 24)) for prompt in PROMPTS]
        cancellation.cancel()
        go_on.set()
        assert isinstance(cut.exception(DEADLINE), Interrupted)
        assert [other.result(DEADLINE).raw for other in others] == before


def test_one_that_waits_for_its_turn_is_cut_off_before_it(shallow: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    take = LlamaCppStream.take

    def noticed(stream: LlamaCppStream, chunk: dict[str, Any]) -> bool:
        begun.set()
        assert go_on.wait(DEADLINE)
        return take(stream, chunk)

    monkeypatch.setattr(LlamaCppStream, "take", noticed)
    model, cancellation = shallow("deterministic"), Cancellation()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(model.generate, GenerationRequest(PROMPTS[0], "line", 4))
        assert begun.wait(DEADLINE)
        waiting = pool.submit(model.generate, GenerationRequest(PROMPTS[1], "line", 4), cancellation)
        cancellation.cancel()
        assert isinstance(waiting.exception(DEADLINE), Interrupted)
        assert not first.done()
        go_on.set()
        assert first.result(DEADLINE).raw


def test_a_generation_that_breaks_off_is_no_result() -> None:
    def stream(chunk: dict[str, Any]) -> LlamaCppStream:
        begun = LlamaCppStream("line", threading.Event().is_set)
        begun.take(chunk)
        return begun

    with pytest.raises(StepError, match="too odd"):
        stream({"error": {"code": 400, "message": "too odd"}}).check()
    with pytest.raises(TransientStepError, match="busy"):
        stream({"error": {"code": 503, "message": "busy"}}).check()
    with pytest.raises(TransientStepError, match="no reason known"):
        stream({"choices": [{"text": "a", "finish_reason": None}]}).check()


def test_characters_that_no_store_takes_are_replaced() -> None:
    stream = LlamaCppStream("line", threading.Event().is_set)
    assert not stream.take({"choices": [{"text": "a\0b\ud800c", "finish_reason": None}]})
    assert stream.kept() == "a\ufffdb\ufffdc"


def test_the_catalogue_opens_the_model_under_the_identity_that_it_names(tmp_path: Path, smollm2: Make) -> None:
    spec = find_model(tmp_path / "models.toml", "smollm2-135m")
    smollm2(context=64)  # skips where the model isn't installed
    model = open_model(spec, "deterministic", 1)
    assert model.identity == identity(spec)
    assert model.identity.startswith("smollm2-135m@")


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF, but not really")
    with pytest.raises(InputError, match=r"broken\.gguf is no GGUF file"):
        LlamaCppModel(path, "broken", "fast", 1, 512)
