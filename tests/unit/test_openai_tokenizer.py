from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.generation import Sampling
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt, plain
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.protocols.chat import Completions
from cotrail.engines.language_models.served.request import Order, tokenizer_request
from cotrail.engines.language_models.token_counts import LONGEST_PART, Counter, Dialect, Tokenized, estimated_tokens
from cotrail.errors import BlockedError

ENDPOINT = Endpoint(url="http://host/v1", model="m", context=100)
LINE = GenerationRequest(Prompt(turns=(plain("Q"),)), "line", 9)
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)


def completion(dialect: Dialect, request: GenerationRequest) -> dict[str, Any]:
    """The body that asks for a completion."""
    order = Order(endpoint=ENDPOINT, dialect=dialect, prompt=request.prompt, request=request, text="Q")
    return Completions().body(order)


class Tokenizer:
    """A token a word; counts what it is asked."""

    def __init__(self, counts: bool) -> None:  # noqa: FBT001
        self.asked: list[str] = []
        self._counts = counts

    def __call__(self, text: str, begins: bool) -> Tokenized:  # noqa: FBT001
        self.asked.append(text)
        tokens = [len(word) for word in text.split()]
        return Tokenized(tokens=tokens, count=len(tokens) if self._counts else None)


def test_parts_are_counted_once_and_whole_prompts_each_time() -> None:
    tokenizer = Tokenizer(counts=True)
    counter = Counter(tokenizer)
    whole = "word " * LONGEST_PART
    assert [counter.count(text) for text in ("a b c", "a b c", whole, whole)] == [3, 3, LONGEST_PART, LONGEST_PART]
    assert tokenizer.asked == ["a b c", whole, whole]


def test_the_dialect_is_learnt_from_the_tokenizer() -> None:
    for counts, dialect in ((True, "vllm"), (False, "llama.cpp")):
        counter = Counter(Tokenizer(counts=counts))
        counter.count("a")
        assert counter.dialect == dialect
    asked: list[str] = []
    counter = Counter(lambda text, _: asked.append(text))
    assert counter.count("four") == counter.count("five!!") == 2
    assert asked == ["four"]
    assert counter.dialect == "openai"
    assert counter.tokens(["<", "s>"]) is None


def test_pieces_are_tokenized_each_by_itself_and_the_first_begins_the_prompt() -> None:
    begun: list[bool] = []

    def tokenizer(text: str, begins: bool) -> Tokenized:  # noqa: FBT001
        begun.append(begins)
        return Tokenized(tokens=[1] * begins + [len(text)])

    assert Counter(tokenizer).tokens(["It is <", "s> a b <", "/s>"]) == [1, 7, 8, 3]
    assert begun == [True, False, False]
    assert "add_special_tokens" not in tokenizer_request(ENDPOINT, "x")
    continued = tokenizer_request(ENDPOINT, "x", begins=False)
    assert (continued["add_special"], continued["add_special_tokens"]) == (False, False)


@given(st.text(), st.text())
def test_an_estimate_grows_with_the_text(first: str, second: str) -> None:
    both = estimated_tokens(first + second)
    assert max(estimated_tokens(first), estimated_tokens(second)) <= both
    assert both <= estimated_tokens(first) + estimated_tokens(second)
    assert len(first) / 3 <= estimated_tokens(first) <= len(first)


def test_other_scripts_are_taken_to_need_a_token_a_character() -> None:
    assert estimated_tokens("東京は日本の首都です") == 10


def test_each_dialect_is_asked_for_temperature_alone() -> None:
    plain, llama, vllm = (completion(dialect, LINE) for dialect in DIALECTS)
    assert plain.items() <= llama.items()
    assert llama["samplers"] == ["temperature"]
    assert {key for key in vllm if plain.get(key) != vllm[key]} == {
        "stream_options",
        "top_k",
        "min_p",
        "repetition_penalty",
    }
    assert all(asked["top_p"] == 1 for asked in (plain, llama, vllm))


def test_sampling_by_more_than_temperature_is_asked_for_in_each_dialects_words() -> None:
    drawn = Sampling(temperature=0.7, top_p=0.9, top_k=40, repetition_penalty=1.2)

    def fields(dialect: Dialect, sampling: Sampling) -> dict[str, object]:
        request = replace(LINE, sampling=sampling)
        usual = completion(dialect, LINE)
        body = completion(dialect, request)
        return {name: value for name, value in body.items() if usual.get(name) != value}

    common = {"temperature": 0.7, "top_p": 0.9}
    assert fields("vllm", drawn) == common | {"top_k": 40, "repetition_penalty": 1.2}
    assert fields("llama.cpp", drawn) == common | {
        "top_k": 40,
        "repeat_penalty": 1.2,
        "repeat_last_n": 100,
        "samplers": ["penalties", "temperature", "top_k", "top_p"],
    }
    assert fields("llama.cpp", Sampling(top_p=0.5)) == {"top_p": 0.5, "samplers": ["temperature", "top_p"]}
    assert fields("openai", Sampling(temperature=0.7, top_p=0.9)) == common
    for more in (Sampling(top_k=40), Sampling(repetition_penalty=1.2)):
        with pytest.raises(
            BlockedError, match=r"no top_k and no repetition penalty: take a server of vLLM or llama.cpp"
        ):
            fields("openai", more)


def test_where_scores_are_asked_for_no_server_holds_text_back_for_a_stop_string() -> None:
    scored = completion("vllm", replace(LINE, scored=True))
    assert scored["logprobs"] == 1
    assert "stop" not in scored
    assert completion("vllm", LINE)["stop"] == ["\n"]
    assert "stop" not in completion("vllm", replace(LINE, until="stop", stop=("X",)))
