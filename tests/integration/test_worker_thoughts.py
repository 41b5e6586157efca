"""Thoughts of models in the worker: told apart from the text, and closed where they take too long."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cotrail.core.actions.generate import check_answered
from cotrail.core.calls import Tool
from cotrail.core.generation import HandsBack, Until
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel, Profile
from cotrail.core.prompts import Prompt, assistant, plain, tool, user
from cotrail.core.results import Generated
from cotrail.engines.language_models.catalogue import Transformers, smollm2_path
from cotrail.engines.language_models.llamacpp.model import LlamaCppModel
from cotrail.engines.language_models.thinking import Thinking
from cotrail.errors import BlockedError, UnansweredError
from tests.integration.learned import Exchange, taught

BRIDGE = Prompt(turns=(user("Who built it?"),))
ENDLESS = Prompt(turns=(user("Think on."),))
ENDED = Prompt(turns=(user("Think only."),))
CALLING = Prompt(
    turns=(user("Search."),), tools=(Tool(name="search", description="Finds pages.", parameters='{"type": "object"}'),)
)
THOUGHT = "A bridge. Brenn, I think."
TEXT = "Brenn built it. And more."
CALL = '<tool_call>{"name": "search", "arguments": {"query": "Vell"}}</tool_call>'

EXCHANGES = (
    Exchange("Who built it?", f"<think>{THOUGHT}</think>\n\n{TEXT}"),
    Exchange("Who built it?", f"<think></think>{TEXT}"),
    Exchange("Who built it?", f"<think>{THOUGHT}</think>\n\n{TEXT}"),
    *(
        Exchange("Think on.", f"<think>{'Hm.' * times}\n</think>\n\nIt is Brenn.")
        for times in (3, 4, 5, 8, 12, 20, 30, 31, 32)
    ),
    Exchange("Think only.", "<think>I wonder."),
    Exchange("Search.", f"<think>I look.</think>{CALL}"),
)

Make = Callable[..., LanguageModel]


@pytest.fixture(scope="module", params=["words", "controls"])
def folder(request: pytest.FixtureRequest, transformers: None) -> Path:
    """A model whose marks are words or control tokens."""
    return taught("thinking", EXCHANGES) / str(request.param)


@pytest.fixture
def opened() -> Iterator[list[LanguageModel]]:
    models: list[LanguageModel] = []
    yield models
    for model in models:
        model.interrupt()


@pytest.fixture
def learned(folder: Path, opened: list[LanguageModel]) -> Make:
    from cotrail.engines.language_models.transformers.model import TransformersModel

    def make(profile: Profile = "fast", slots: int = 1, **thinking: Any) -> LanguageModel:
        opened.append(TransformersModel(folder, "m", profile, slots, 512, Thinking(**thinking)))
        return opened[-1]

    return make


@pytest.fixture
def smollm2(opened: list[LanguageModel]) -> Make:
    pytest.importorskip("xllamacpp", reason="llama.cpp isn't installed")

    def make(profile: Profile = "fast", **thinking: Any) -> LanguageModel:
        opened.append(LlamaCppModel(smollm2_path(), "smollm2-135m", profile, 1, 1024, Thinking(**thinking)))
        return opened[-1]

    return make


def ask(
    model: LanguageModel, prompt: Prompt = BRIDGE, until: Until = "sentence", most: int = 20, **more: Any
) -> Generated:
    return model.generate(GenerationRequest(prompt, until, most, **more))


@pytest.mark.parametrize(
    ("thinking", "thought"),
    [({}, THOUGHT), ({"template": {"opens": True}}, THOUGHT), ({"template": {"enable_thinking": False}}, "")],
    ids=["tags", "inside", "off"],
)
@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_the_text_is_the_same_wherever_thoughts_are(
    learned: Make, profile: Profile, thinking: dict[str, Any], thought: str
) -> None:
    result = ask(learned(profile, **thinking), scored=True)
    assert (result.text, result.thoughts, result.ended) == ("Brenn built it.", thought, "until")
    assert result.thoughts_are == ("whole" if thought else "")
    assert "".join(text for text, _ in result.tokens) == result.raw
    assert TEXT.startswith(result.raw)


def test_a_thought_that_takes_too_long_is_closed(learned: Make) -> None:
    whole, cut = ask(learned(), ENDLESS, "end"), ask(learned(thought_tokens=9), ENDLESS, "end")
    assert (cut.text, cut.thought_tokens) == ("It is Brenn.", 9)
    assert whole.thoughts.startswith(cut.thoughts)
    assert whole.thought_tokens > 50
    assert cut.generated_tokens < 30


def test_thoughts_take_nothing_of_the_tokens_of_a_text(learned: Make) -> None:
    result = ask(learned(), until="end", most=2)
    assert (result.thoughts, result.ended) == (THOUGHT, "length")
    assert TEXT.startswith(result.text)
    assert result.text


def test_prompts_that_are_written_together_come_out_as_alone(learned: Make) -> None:
    prompts = [BRIDGE, ENDLESS, CALLING, BRIDGE]
    alone = [ask(learned(thought_tokens=25), prompt, "end") for prompt in prompts]
    model = learned(slots=4, thought_tokens=25)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda prompt: ask(model, prompt, "end"), prompts))
    assert [(each.text, each.thoughts, each.calls) for each in together] == [
        (each.text, each.thoughts, each.calls) for each in alone
    ]


def test_whoever_ends_while_thinking_has_not_answered(learned: Make) -> None:
    result = ask(learned(), ENDED)
    assert (result.text, result.thoughts, result.ended) == ("", "I wonder.", "thoughts")
    with pytest.raises(UnansweredError, match="thought_tokens"):
        check_answered(result)


@pytest.mark.parametrize("hands_back", ["calls", "all", "none"])
def test_a_thought_before_a_call_is_shown_to_the_model_again(learned: Make, hands_back: HandsBack) -> None:
    model: Any = learned(hands_back=hands_back)
    shown = hands_back != "none"
    result = ask(model, CALLING, "end", 60)
    assert [call.name for call in result.calls] == ["search"]
    assert json.loads(result.carried or "{}") == ({"reasoning_content": "I look."} if shown else {})
    later = CALLING.wrote(result.text, result.calls, result.carried).add(tool("0.0", "Found."))
    laid_out = "".join(segment.text for segment in model._laid_out(later.handing_back(hands_back)))
    assert ("<think>I look.</think>" in laid_out) == shown


def test_what_decides_how_a_model_thinks_is_in_its_identity(folder: Path, learned: Make) -> None:
    tables: list[dict[str, Any]] = [{}, {"thinks": "no"}, {"thought_tokens": 5}, {"template": {"opens": True}}]
    identities = {Transformers(path=folder, context=512, **table).identity("m") for table in tables}
    assert len(identities) == len(tables)
    assert learned().identity in identities


NAMED: dict[str, Any] = {"properties": {"name": {"enum": ["Brenn", "Vell"]}}, "required": ["name"]}
ANSWER = json.dumps({"type": "object", "additionalProperties": False, **NAMED})


@pytest.mark.parametrize("thinking", [{}, {"template": {"opens": True}}], ids=["tags", "inside"])
@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_a_thought_is_written_freely_and_the_text_behind_it_in_its_form(
    learned: Make, profile: Profile, thinking: dict[str, Any]
) -> None:
    model = learned(profile, **thinking)
    result = ask(model, until="end", schema=ANSWER)
    assert result.thoughts == THOUGHT
    assert json.loads(result.text)["name"] in ("Brenn", "Vell")
    assert ask(model, until="end", choices=("Vell", "A bridge")).text in ("Vell", "A bridge")


def test_prompts_of_every_form_come_out_together_as_alone(learned: Make) -> None:
    forms: list[dict[str, Any]] = [{}, {"schema": ANSWER}, {"choices": ("Vell", "Holm")}, {}]
    prompts = [ENDLESS, BRIDGE, ENDLESS, BRIDGE]
    alone = [
        ask(learned(thought_tokens=25), prompt, "end", **form) for prompt, form in zip(prompts, forms, strict=True)
    ]
    model = learned(slots=4, thought_tokens=25)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda prompt, form: ask(model, prompt, "end", **form), prompts, forms))
    assert [(each.raw, each.thoughts) for each in together] == [(each.raw, each.thoughts) for each in alone]


FEW_SHOT = "".join(
    f"Q: What is {name}?\n<think>{name} is a {kind}.</think> It is a {kind}.\n\n"
    for name, kind in {"Rome": "city", "Spain": "country", "Texas": "state", "Nile": "river"}.items()
)
PARIS = Prompt(turns=(plain(f"{FEW_SHOT}Q: What is Paris?\n"),))


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_llama_cpp_tells_thoughts_from_text(smollm2: Make, profile: Profile) -> None:
    result = ask(smollm2(profile, thinks="tags"), PARIS)
    assert (result.text, result.thoughts, result.ended) == ("It is a city.", "Paris is a city.", "until")
    assert 0 < result.thought_tokens < result.generated_tokens


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_llama_cpp_closes_a_thought_that_takes_too_long(smollm2: Make, profile: Profile) -> None:
    prompt = Prompt(turns=(user("Tell a long story about a fox."),))
    model = smollm2(profile, thinks="inside", thought_tokens=12)
    result = ask(model, prompt, "end", 15, scored=True)
    assert (result.thought_tokens, result.ended) == (12, "length")
    assert result.thoughts
    assert result.text
    assert "".join(text for text, _ in result.tokens) == result.raw
    assert result.generated_tokens == 27
    assert ask(model, prompt, "end", 15).text == result.text


def test_llama_cpp_reports_marks_that_its_table_does_not_know_of(smollm2: Make) -> None:
    with pytest.raises(BlockedError, match='set thinks = "tags"'):
        ask(smollm2(), PARIS)
    assert ask(smollm2(thinks="no"), PARIS, "line").text.startswith("<think>")


def test_a_turn_that_the_model_goes_on_in_is_no_thought(smollm2: Make) -> None:
    prompt = Prompt(turns=(user("Tell a story."), assistant("Once upon a time")))
    result = ask(smollm2(thinks="tags"), prompt, "end", 10)
    assert result.text
    assert not result.thoughts


KINDS = ("It is a city.", "It is a river.")


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_llama_cpp_thinks_freely_and_then_writes_the_form(smollm2: Make, profile: Profile) -> None:
    result = ask(smollm2(profile, thinks="tags"), PARIS, "end", choices=KINDS)
    assert (result.text, result.thoughts) == ("It is a city.", "Paris is a city.")
    assert result.prompt_tokens == ask(smollm2(profile, thinks="tags"), PARIS).prompt_tokens


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_llama_cpp_writes_the_form_behind_a_thought_that_was_closed(smollm2: Make, profile: Profile) -> None:
    prompt = Prompt(turns=(user("Tell a long story about a fox."),))
    model = smollm2(profile, thinks="inside", thought_tokens=12)
    result, free = ask(model, prompt, "end", 30, schema=ANSWER), ask(model, prompt, "end", 30)
    assert result.thoughts == free.thoughts
    assert json.loads(result.text)["name"] in ("Brenn", "Vell")
