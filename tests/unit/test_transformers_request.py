import math
from typing import TYPE_CHECKING, Any

import pytest

from cotrail.core.generation import Sampling, Until

if TYPE_CHECKING:
    from cotrail.engines.language_models.transformers.request import Request
    from cotrail.engines.language_models.transformers.vocabulary import Vocabulary

pytestmark = pytest.mark.usefixtures("transformers")

END = 0


@pytest.fixture(scope="module")
def vocabulary() -> "Vocabulary":
    """A token for each byte, and one that ends a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from cotrail.engines.language_models.transformers.vocabulary import Vocabulary

    tokens = {"</s>": END} | {byte: n + 1 for n, byte in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=tokens, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast: Any = PreTrainedTokenizerFast
    return Vocabulary(fast(tokenizer_object=tokenizer, eos_token="</s>"), [END])


def written(
    vocabulary: "Vocabulary", text: str, until: Until, max_tokens: int = 1000, stop: tuple[str, ...] = ()
) -> "tuple[Request, int]":
    """What a request makes of a text, and how many of its tokens it took; all where it would take more."""
    from cotrail.engines.language_models.transformers.request import Request

    request = Request([], vocabulary, until, max_tokens, Sampling(), stop=stop)
    tokens = [*vocabulary.encode(text), END]
    taken = next((n for n, token in enumerate(tokens, 1) if request.take(token)), len(tokens))
    return request, taken


def test_a_line_ends_at_its_end(vocabulary: "Vocabulary") -> None:
    request, taken = written(vocabulary, " the Amber Sea. It is cold.\nQ: more", "line")
    assert (request.kept, request.text) == ("the Amber Sea. It is cold.", " the Amber Sea. It is cold.")
    assert taken == len(" the Amber Sea. It is cold.\n")


def test_a_line_that_is_empty_is_nothing(vocabulary: "Vocabulary") -> None:
    request, taken = written(vocabulary, "\n\nQ: more", "line")
    assert (request.kept, taken) == ("", 1)


def test_a_chain_goes_on_over_its_lines_up_to_a_further_demonstration(vocabulary: "Vocabulary") -> None:
    chain = " It is cold.\n\nSo the answer is no.\n"
    request, taken = written(vocabulary, f"{chain}\nQ: more", "chain")
    assert (request.kept, taken) == ("It is cold.\n\nSo the answer is no.", len(f"{chain}\nQ:"))
    request, taken = written(vocabulary, f"{chain}\nQ: more", "end")
    assert (request.kept, taken) == (f"{chain}\nQ: more".strip(), len(f"{chain}\nQ: more") + 1)


def test_a_sentence_ends_where_the_next_ones_first_word_is_whole(vocabulary: "Vocabulary") -> None:
    request, taken = written(vocabulary, " Dr. J. K. Holm built it. It is high. So", "sentence")
    assert request.kept == "Dr. J. K. Holm built it."
    assert taken == len(" Dr. J. K. Holm built it. It ")
    assert request.text == " Dr. J. K. Holm built it. It "


@pytest.mark.parametrize(("text", "goes_on"), [("He came. She ", True), ("\nQ", False)])
def test_a_chain_is_written_on_unless_its_line_ended(vocabulary: "Vocabulary", text: str, *, goes_on: bool) -> None:
    from cotrail.engines.language_models.transformers.causal import rest_of
    from cotrail.engines.language_models.transformers.request import Request

    request = Request([], vocabulary, "sentence", 99, Sampling(), chain="Who came?")
    for token in vocabulary.encode(text):  # one token may hold a line break and what follows
        request.take(token)
    assert (rest_of(request, 999) is not None) == goes_on


def test_a_text_ends_with_the_token_for_that_and_after_so_many(vocabulary: "Vocabulary") -> None:
    request, taken = written(vocabulary, "Brenn", "line")
    assert (request.kept, taken, request.written[-1], request.ending) == ("Brenn", 6, END, ("end", ""))
    request, taken = written(vocabulary, "Brenn is", "sentence", max_tokens=3)
    assert (request.kept, taken, request.ending) == ("Bre", 3, ("length", ""))


@pytest.mark.parametrize("until", ["stop", "end", "chain"])
def test_a_stop_string_ends_a_text_over_the_borders_of_its_tokens(vocabulary: "Vocabulary", until: Until) -> None:
    request, taken = written(vocabulary, "Why?\n Fact: yes. \n\nFact: no", until, stop=("\n\n", "never"))
    assert taken == len("Why?\n Fact: yes. \n\n")
    assert request.ending == ("stop", "\n\n")
    assert request.text == "Why?\n Fact: yes. \n\n"
    assert request.kept == ("Why?\n Fact: yes. " if until == "stop" else "Why?\n Fact: yes.")


def test_a_text_may_end_before_it_begins(vocabulary: "Vocabulary") -> None:
    request, _ = written(vocabulary, "\n\nmore", "stop", stop=("\n\n",))
    assert (request.kept, request.ending) == ("", ("stop", "\n\n"))


def test_control_tokens_in_a_text_are_plain_text(vocabulary: "Vocabulary") -> None:
    tokens = vocabulary.encode("a</s>")
    assert END not in tokens
    assert vocabulary.decode(tokens) == "a</s>"


def test_characters_of_several_tokens_appear_whole(vocabulary: "Vocabulary") -> None:
    text = "naïve 東京 👩‍👩‍👧 é"
    assert written(vocabulary, text, "line")[0].text == text
    request, _ = written(vocabulary, text, "line", max_tokens=3)
    assert request.text == "na"  # the third token is half an ï


def test_bytes_that_are_no_character_are_replaced(vocabulary: "Vocabulary") -> None:
    from cotrail.engines.language_models.transformers.request import Request

    request = Request([], vocabulary, "line", 9, Sampling())
    half = vocabulary.encode("東")[:2]
    for token in [*half, *vocabulary.encode("a\0b")]:
        request.take(token)
    assert request.text == "\ufffda\ufffdb"


def test_a_character_of_several_tokens_is_scored_with_its_last_one(vocabulary: "Vocabulary") -> None:
    import torch

    from cotrail.engines.language_models.transformers.request import Request

    request = Request([], vocabulary, "line", 99, Sampling(), scored=True)
    likely = torch.zeros(300)
    likely[END] = 1.0
    tokens = [*vocabulary.encode("a東\nb")]
    for token in tokens[: len("a東\n".encode())]:
        request.take(token, likely)
    assert [text for text, _ in request.scores] == ["a", "", "", "東", ""]
    assert "".join(text for text, _ in request.scores) == request.text
    assert [score for _, score in request.scores] == pytest.approx([-math.log(299 + math.e)] * 5)


def test_the_token_that_ends_a_text_has_no_score(vocabulary: "Vocabulary") -> None:
    import torch

    from cotrail.engines.language_models.transformers.request import Request

    request = Request([], vocabulary, "line", 99, Sampling(), scored=True)
    assert request.take(END, torch.zeros(300))
    assert request.scores == []
