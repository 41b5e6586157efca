"""Embedders of the published forms, made tiny: each has the prefixes, the tokenizer and the pooling of its page.

Expected numbers are computed from the bare model: one text at a time, its prefix before it.
"""

import string
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from cotrail.core.ports.encoders import Side
from cotrail.core.questions import Paragraph
from cotrail.engines.embedding.embedders import EMBEDDERS
from cotrail.engines.retrieval.engine import NewIndex
from cotrail.engines.retrieval.stores import FolderStore
from tests.integration.small_models import saved, small
from tests.searching import search

pytest.importorskip("sentence_transformers", reason="sentence-transformers isn't installed")

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
}


def word_pieces() -> Any:
    """As BERT's, of single characters."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    letters = string.ascii_lowercase + string.digits
    vocabulary = [*SPECIAL, *letters, *(f"##{each}" for each in letters), *string.punctuation]
    made = Tokenizer(models.WordPiece({each: n for n, each in enumerate(vocabulary)}, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return _fast(made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")


def sentence_pieces() -> Any:
    """As XLM-RoBERTa's, which the multilingual E5 has."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    pieces = [*SPECIAL, "▁", *string.printable[:94]]
    made = Tokenizer(models.Unigram([(each, -1.0 - n / 100) for n, each in enumerate(pieces)], 1, byte_fallback=False))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return _fast(made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")


def byte_pairs() -> Any:
    """As Qwen's: bytes, padded at the left, and a token at the end whose state is the embedding."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({each: n for n, each in enumerate([*alphabet, "<|end|>"])}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.post_processor = processors.TemplateProcessing(
        single="$A <|end|>", special_tokens=[("<|end|>", len(alphabet))]
    )
    return _fast(made, pad_token="<|end|>", eos_token="<|end|>", padding_side="left")


def _fast(made: Any, **names: Any) -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=made, **names)  # type: ignore[no-untyped-call, unused-ignore]


class Form(Struct, frozen=True):
    """A published embedder: what makes its tokenizer, its model's class, how it pools, and its prefixes."""

    words: Any
    model: str
    pooling: str
    query: str = ""
    text: str = ""
    sizes: dict[str, Any] = {}


INSTRUCTION = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
FORMS = {
    "e5": Form(word_pieces, "BertModel", "mean", "query: ", "passage: "),
    "multilingual-e5": Form(sentence_pieces, "XLMRobertaModel", "mean", "query: ", "passage: ", {"pad_token_id": 0}),
    "bge": Form(word_pieces, "BertModel", "cls", "Represent this sentence for searching relevant passages: "),
    "nomic": Form(word_pieces, "BertModel", "mean", "search_query: ", "search_document: "),
    "qwen": Form(byte_pairs, "Qwen3Model", "lasttoken", INSTRUCTION, "", {"num_key_value_heads": 2, "head_dim": 8}),
}
TEXTS = ("The Vell flows into the Amber Sea.", "salt", "A lamp of 1980, in the north: who made it?")


@pytest.fixture(params=FORMS)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Form, Path]:
    """The form, and the folder that sentence-transformers saved."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    form = FORMS[request.param]
    words = form.words()
    saved(tmp_path / "bare", small(form.model, **SIZES, **form.sizes, vocab_size=len(words)), words)
    reader = Transformer(str(tmp_path / "bare"))
    modules = [reader, Pooling(SIZES["hidden_size"], pooling_mode=form.pooling), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "model"))
    prefixes = f"query_prefix = {form.query!r}\ntext_prefix = {form.text!r}\n".replace("'", '"')
    table = f'[embedders.tiny]\nengine = "sentence-transformers"\npath = "{tmp_path / "model"}"\n{prefixes}'
    (tmp_path / "models.toml").write_text(table)
    return form, tmp_path


def by_hand(form: Form, folder: Path, text: str) -> Any:
    """The embedding of a text that stands alone, from the states of the bare model."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    words: Any = AutoTokenizer
    tokens = words.from_pretrained(folder / "bare")(text, return_tensors="pt")
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder / "bare").eval()(**tokens).last_hidden_state[0]
    pooled = {"mean": states.mean(0), "cls": states[0], "lasttoken": states[-1]}[form.pooling]
    return (pooled / pooled.norm()).numpy()


def test_embeddings_are_those_of_the_published_form(made: tuple[Form, Path]) -> None:
    form, folder = made
    embedder = EMBEDDERS.find(folder / "models.toml", "tiny").open("deterministic")
    sides: dict[Side, str] = {"query": form.query, "text": form.text}
    for side, prefix in sides.items():
        for text, vector in zip(TEXTS, embedder.embed(TEXTS, side), strict=True):
            assert vector == pytest.approx(by_hand(form, folder, prefix + text), abs=1e-5)


def test_a_corpus_is_searched_with_the_query_s_form(made: tuple[Form, Path]) -> None:
    form, folder = made
    store = FolderStore(folder / "corpora", folder / "models.toml")
    given = [Paragraph(id=str(n), title="", text=text) for n, text in enumerate(TEXTS)]
    store.build("mine", given, NewIndex(settings={"model": "tiny"}))
    asked = by_hand(form, folder, f"{form.query}who made the lamp?")
    expected = {each.id: float(asked @ by_hand(form, folder, form.text + each.text)) for each in given}
    hits = search(store.open("mine"), "who made the lamp?", 3)
    assert {hit.paragraph.id: hit.score for hit in hits} == pytest.approx(expected, abs=1e-5)
