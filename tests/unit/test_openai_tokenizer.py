from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.generation import Sampling
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.openai.request import INSTRUCTION, completion_request, tokenizer_request
from cotrail.engines.language_models.openai.tokenizer import Counter, Tokenized, estimated_tokens
from cotrail.engines.language_models.token_counts import LONGEST_PART

ENDPOINT = Endpoint(url="http://host/v1", model="m", context=100)


class Tokenizer:
    """A token a word; counts what it is asked."""

    def __init__(self, counts: bool) -> None:  # noqa: FBT001
        self.asked: list[str] = []
        self._counts = counts

    def __call__(self, text: str) -> Tokenized:
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
    counter = Counter(asked.append)
    assert counter.count("four") == counter.count("five!!") == 2
    assert asked == ["four"]
    assert counter.dialect == "openai"


@given(st.text(), st.text())
def test_an_estimate_grows_with_the_text(first: str, second: str) -> None:
    both = estimated_tokens(first + second)
    assert max(estimated_tokens(first), estimated_tokens(second)) <= both
    assert both <= estimated_tokens(first) + estimated_tokens(second)
    assert len(first) / 3 <= estimated_tokens(first) <= len(first)


def test_other_scripts_are_taken_to_need_a_token_a_character() -> None:
    assert estimated_tokens("東京は日本の首都です") == 10


def test_each_dialect_is_asked_for_temperature_alone() -> None:
    plain, llama, vllm = (
        completion_request(ENDPOINT, dialect, "Q", "line", 9, Sampling()) for dialect in ("openai", "llama.cpp", "vllm")
    )
    assert plain.items() <= llama.items()
    assert llama["samplers"] == ["temperature"]
    assert {key for key in vllm if plain.get(key) != vllm[key]} == {
        "stream_options",
        "top_k",
        "min_p",
        "repetition_penalty",
    }
    assert all(asked["top_p"] == 1 for asked in (plain, llama, vllm))


def test_a_chat_repeats_nothing_but_the_prompt_behind_its_instruction() -> None:
    chat = Endpoint(url="http://host/v1", model="m", context=100, api="chat")
    body = completion_request(chat, "openai", "Q: Who?\nA:", "sentence", 9, Sampling())
    assert body["messages"] == [{"role": "user", "content": f"{INSTRUCTION}\n\nQ: Who?\nA:"}]
    assert "prompt" not in body
    assert tokenizer_request(chat, "x")["prompt"] == "x"
