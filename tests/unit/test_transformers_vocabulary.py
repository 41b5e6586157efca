"""Control tokens in texts are plain text, whatever the vocabulary is made of."""

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.engines.language_models.thinking import Segment
from tests.cases import each_case

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from cotrail.engines.language_models.transformers.vocabulary import Vocabulary

pytestmark = pytest.mark.usefixtures("transformers")

CHARACTERS = "abcdenu </s>|"
PIECES = ["</s>", "<unk>", "<|end|>", "<|end", "|>", "</", "s>", "ab", *dict.fromkeys(CHARACTERS)]
NUMBERS = {piece: number for number, piece in enumerate(PIECES)}
CONTROLS = PIECES[:3]


def byte_pairs() -> "Tokenizer":
    """As Llama's: control tokens are in the vocabulary, and pairs of pieces give one."""
    from tokenizers import Tokenizer, decoders, models

    pairs = [("<", "/"), ("s", ">"), ("</", "s>"), ("a", "b")]
    made = Tokenizer(models.BPE(vocab=NUMBERS, merges=pairs, unk_token="<unk>"))
    made.decoder = decoders.Fuse()
    return made


def unigrams() -> "Tokenizer":
    """As T5's: control tokens are pieces like any other."""
    from tokenizers import Tokenizer, decoders, models, normalizers, processors

    made = Tokenizer(models.Unigram([(piece, -len(piece) / 9) for piece in PIECES], unk_id=1))
    made.normalizer = normalizers.NFKC()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 0)])
    made.decoder = decoders.Fuse()
    return made


def words() -> "Tokenizer":
    """Words between blanks, which control tokens may be."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({piece: number for piece, number in NUMBERS.items() if piece != " "}, "<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return made


def vocabulary(tokenizer: "Tokenizer") -> "Vocabulary":
    from tokenizers import AddedToken
    from transformers import PreTrainedTokenizerFast

    from cotrail.engines.language_models.transformers.vocabulary import Vocabulary

    tokenizer.add_special_tokens([AddedToken(control, special=True, normalized=False) for control in CONTROLS])
    tokenizer.add_tokens(["dun"])
    fast: Any = PreTrainedTokenizerFast
    return Vocabulary(fast(tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>"), [0])


TOKENIZERS = {"pairs": byte_pairs, "unigrams": unigrams, "words": words}


@cache
def made(kind: str) -> "Vocabulary":
    return vocabulary(TOKENIZERS[kind]())


@each_case("kind", TOKENIZERS)
@each_case("text", ["</s>", "ab </s> ab", "<|end|></s>", "ab<|end|>ab", " </s>\ndun"])
def test_control_tokens_in_a_text_are_plain_text(kind: str, text: str) -> None:
    tokens = made(kind).encode(text, special=False)
    assert not {0, 2} & set(tokens)
    if kind != "words":
        assert made(kind).decode(tokens) == text.replace("\n", "")


@each_case("kind", TOKENIZERS)
def test_what_a_prompt_ends_with_stays_a_control_token(kind: str) -> None:
    assert [token for token in made(kind).encode("ab </s>") if token == 0] == ([0] if kind == "unigrams" else [])


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(text=st.text("abcdenu </s>|", max_size=30))
def test_a_text_without_control_tokens_has_the_tokens_it_always_had(kind: str, text: str) -> None:
    tokenizer = made(kind)._tokenizer
    if not any(control in text for control in CONTROLS):
        assert made(kind).encode(text) == tokenizer.encode(text).ids
        # The tokenizer for texts with control tokens, too, differs in these alone.
        assert made(kind)._quoting.encode(text).ids == tokenizer.encode(text).ids


@each_case("kind", TOKENIZERS)
def test_a_template_has_its_control_tokens_and_a_quotation_has_none(kind: str) -> None:
    segments = [Segment("ab <|end|> "), Segment("</s>", plain=True), Segment(" dun </s>")]
    tokens = made(kind).encode_segments(segments, special=False)
    assert [token for token in tokens if token in (0, 2)] == [2, 0]
    assert made(kind).encode_segments([Segment("ab <|end|> </s>")], special=False)[-1] == 0


def test_nul_names_no_control_token() -> None:
    assert 0 not in made("pairs").encode("<|end|> \0000\0 ")


def test_a_text_behind_others_keeps_the_blank_that_it_begins_with() -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    made = Tokenizer(models.Unigram([("<unk>", 0.0), ("▁the", -1.0), ("▁sea", -1.0)], unk_id=0))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    seas = vocabulary(made)
    the, sea = seas.encode("the sea")
    assert [seas.written().take(sea), seas.written([the]).take(sea)] == ["sea", " sea"]
