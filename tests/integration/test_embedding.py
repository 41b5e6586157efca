import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from cotrail.core.actions.embed import Embed
from cotrail.core.ports.encoders import Embedder
from cotrail.core.ports.language_model import Profile
from cotrail.core.questions import Paragraph
from cotrail.core.results import Embedded
from cotrail.engines.embedding.embedders import EMBEDDERS
from cotrail.engines.engine_catalogue import NamedEngine
from cotrail.errors import InputError, NotInstalledError, TransientStepError
from tests.integration.served import Served, computed


@pytest.fixture(autouse=True, scope="module")
def installed() -> None:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers isn't installed")


ARISTOTLE = Paragraph(
    id="a",
    title="Aristotle",
    text="Aristotle (384-322 BC) was a Greek philosopher and polymath during the Classical period in Ancient Greece.",
)
LAPTOP = Paragraph(
    id="l", title="Epson HX-20", text="The Epson HX-20, the first laptop computer, was invented in 1980."
)
FACT = Paragraph(id="f", title="", text="A laptop is a portable computer.")

SENTENCES = ("Aristotle died in 322 BC.", "The first laptop was invented in 1980.", "Thus, he did not use a laptop.")


WORDS = ["the", "river", "flows", "into", "a", "sea", "of", "salt", "where", "old", "boats", "carry", "stone", "north"]


def actions(seed: int = 1, count: int = 12) -> list[Embed]:
    """Sentences and paragraphs of few and of many words, some of them several times."""
    chance = random.Random(seed)

    def text() -> str:
        return " ".join(chance.choice(WORDS) for _ in range(chance.choice([1, 8, 40, 90])))

    texts = [text() for _ in range(20)]
    paragraphs = [Paragraph(id=str(n), title=chance.choice(["", "River"]), text=text()) for n in range(20)]
    return [
        Embed(
            sentences=tuple(chance.choices(texts, k=chance.randrange(1, 4))),
            paragraphs=tuple(chance.choices(paragraphs, k=chance.randrange(6))),
        )
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> NamedEngine[Embedder]:
    try:
        return EMBEDDERS.find(tmp_path_factory.mktemp("home") / "models.toml", "all-minilm-l6-v2")
    except NotInstalledError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def deterministic(spec: NamedEngine[Embedder]) -> Embedder:
    return spec.open("deterministic")


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The texts of each pass."""
    from cotrail.engines.embedding import sentence_transformers as adapter

    seen: list[list[str]] = []
    encode = adapter.SentenceTransformerEmbedder._encode

    def watched(self: Any, batch: list[str]) -> Any:
        seen.append(batch)
        return encode(self, batch)

    monkeypatch.setattr(adapter.SentenceTransformerEmbedder, "_encode", watched)
    return seen


def test_a_sentence_is_most_like_the_paragraph_that_it_is_about(deterministic: Embedder) -> None:
    asked = Embed(sentences=SENTENCES, paragraphs=(ARISTOTLE, LAPTOP, FACT))
    (result,) = deterministic.compare([asked])
    assert [len(row) for row in result.similarities] == [3, 3, 3]
    best = [max(range(3), key=row.__getitem__) for row in result.similarities]
    assert best[:2] == [0, 1]
    assert result.similarities[0][0] > 0.5 > result.similarities[0][2]


def test_without_paragraphs_sentences_are_compared_with_one_another(deterministic: Embedder) -> None:
    (result,) = deterministic.compare([Embed(sentences=SENTENCES)])
    rows = result.similarities
    assert [rows[n][n] for n in range(3)] == [1.0] * 3
    assert all(rows[a][b] == rows[b][a] == round(rows[a][b], 6) for a in range(3) for b in range(3))
    assert rows[1][2] > rows[0][1]


def test_the_same_similarities_as_the_library_s_own(spec: NamedEngine[Embedder], deterministic: Embedder) -> None:
    import torch

    from cotrail.engines.embedding import sentence_transformers as adapter

    paragraphs = (ARISTOTLE, LAPTOP, FACT)
    model = adapter.load_encoder(adapter.SentenceTransformer, spec.engine.folder())  # type: ignore[attr-defined]
    expected = model.similarity(model.encode(list(SENTENCES)), model.encode([each.statement for each in paragraphs]))
    for embedder in (deterministic, spec.open("fast")):
        (result,) = embedder.compare([Embed(sentences=SENTENCES, paragraphs=paragraphs)])
        assert torch.allclose(torch.tensor(result.similarities), expected.cpu(), atol=2e-6)


def test_a_server_of_the_same_model_gives_the_same_similarities(
    deterministic: Embedder, served: Served, tmp_path: Path
) -> None:
    pytest.importorskip("httpx2", reason="httpx2 isn't installed")
    model, reading = deterministic._model, Lock()  # type: ignore[attr-defined]

    def embeddings(body: dict[str, Any]) -> object:
        with reading:
            vectors = model.encode(body["input"], show_progress_bar=False)
        return {"data": [{"index": n, "embedding": vector.tolist()} for n, vector in enumerate(vectors)]}

    served.replies = [computed(embeddings)]
    table = f'[embedders.mine]\nengine = "server"\nurl = "{served.url}"\nmodel = "minilm"\nbatch_size = 8\n'
    (tmp_path / "models.toml").write_text(table)
    asked = actions(seed=4, count=4)
    results = EMBEDDERS.find(tmp_path / "models.toml", "mine").open("fast").compare(asked)
    assert close(results, deterministic.compare(asked))


def test_deterministic_vectors_have_the_same_bits_whatever_else_is_compared(
    spec: NamedEngine[Embedder], deterministic: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cotrail.engines.embedding import sentence_transformers as adapter

    bits: dict[str, set[bytes]] = {}
    encode = adapter.SentenceTransformerEmbedder._encode

    def watched(self: Any, batch: list[str]) -> Any:
        made = encode(self, batch)
        for text, vector in zip(batch, made, strict=True):
            bits.setdefault(text, set()).add(vector.tobytes())
        return made

    monkeypatch.setattr(adapter.SentenceTransformerEmbedder, "_encode", watched)
    monkeypatch.setattr(adapter, "MOST_EMBEDDINGS", 0)
    asked = actions()
    whole = deterministic.compare(asked)
    assert deterministic.compare(asked[::-1]) == whole[::-1]
    assert [deterministic.compare([each])[0] for each in asked] == whole
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda each: deterministic.compare([each])[0], asked)) == whole
    assert spec.open("deterministic").compare(asked[3:5]) == whole[3:5]
    assert len(bits) > 20
    assert [len(each) for each in bits.values()] == [1] * len(bits)


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_each_text_is_read_once_and_remembered(
    spec: NamedEngine[Embedder], passes: list[list[str]], monkeypatch: pytest.MonkeyPatch, profile: Profile
) -> None:
    from cotrail.engines.embedding import sentence_transformers as adapter

    embedder = spec.open(profile)
    first = embedder.compare([Embed(sentences=SENTENCES, paragraphs=(FACT,)), Embed(sentences=SENTENCES[:2])])
    assert sorted(text for batch in passes for text in batch) == sorted([*SENTENCES, FACT.statement])
    assert len(passes) == (1 if profile == "fast" else 4)
    assert embedder.compare([Embed(sentences=SENTENCES[:2])])[0] == first[1]
    assert len(passes) == (1 if profile == "fast" else 4)
    monkeypatch.setattr(adapter, "MOST_EMBEDDINGS", 2)
    embedder.compare([Embed(sentences=("a",), paragraphs=(LAPTOP,))])  # now no other one is remembered
    passes.clear()
    assert embedder.compare([Embed(sentences=SENTENCES, paragraphs=(FACT,))])[0] == first[0]
    assert sorted(text for batch in passes for text in batch) == sorted([*SENTENCES, FACT.statement])


def close(one: Sequence[Embedded], other: Sequence[Embedded]) -> bool:
    pairs = [
        (a, b)
        for left, right in zip(one, other, strict=True)
        for rows in zip(left.similarities, right.similarities, strict=True)
        for a, b in zip(*rows, strict=True)
    ]
    return all(abs(a - b) <= 2e-6 for a, b in pairs)


def test_fast_reads_texts_of_like_lengths_together(
    spec: NamedEngine[Embedder], deterministic: Embedder, passes: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cotrail.engines.embedding import sentence_transformers as adapter

    monkeypatch.setattr(adapter, "CHARACTERS_AT_ONCE", {"cpu": 2000, "cuda": 2000})
    asked = actions(seed=2)
    results = spec.open("fast").compare(asked)
    lengths = [[len(text) for text in batch] for batch in passes]
    assert 1 < len(lengths) < sum(map(len, lengths)) / 3
    assert [n for batch in lengths for n in batch] == sorted((n for batch in lengths for n in batch), reverse=True)
    assert all(len(batch) * max(batch) <= 2000 for batch in lengths if len(batch) > 1)
    assert close(results, deterministic.compare(asked))


def test_what_does_not_fit_memory_in_one_pass_is_done_in_several(
    spec: NamedEngine[Embedder], deterministic: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from cotrail.engines.embedding import sentence_transformers as adapter

    encode = adapter.SentenceTransformerEmbedder._encode
    sizes = []

    def cramped(self: Any, batch: list[str]) -> Any:
        if len(batch) > 2 or max(map(len, batch)) > 5000:
            raise torch.OutOfMemoryError
        sizes.append(len(batch))
        return encode(self, batch)

    monkeypatch.setattr(adapter.SentenceTransformerEmbedder, "_encode", cramped)
    asked = actions(seed=3)
    embedder = spec.open("fast")
    assert close(embedder.compare(asked), deterministic.compare(asked))
    assert 2 in sizes
    with pytest.raises(TransientStepError, match="too little memory"):
        embedder.compare([Embed(sentences=("long " * 2000,))])
    assert close(embedder.compare(asked), deterministic.compare(asked))


def test_a_long_text_is_cut_where_the_model_ends(deterministic: Embedder) -> None:
    whole, more = "river sea " * 200, "river sea " * 200 + "stone " * 50
    (result,) = deterministic.compare([Embed(sentences=(whole, more, ""))])
    assert result.similarities[0][1] == 1.0
    assert result.similarities[0][2] < 0.9


def test_nothing_asked_is_nothing_compared(deterministic: Embedder) -> None:
    assert deterministic.compare([]) == []
    assert deterministic.compare([Embed(sentences=())]) == [Embedded(similarities=())]


def test_the_identity_is_known_before_the_model_is_loaded(spec: NamedEngine[Embedder], deterministic: Embedder) -> None:
    assert spec.identity() == deterministic.identity
    assert spec.identity().startswith("all-minilm-l6-v2@")


def test_a_folder_of_one_s_own_opens_under_its_name(spec: NamedEngine[Embedder], tmp_path: Path) -> None:
    folder = spec.engine.folder()  # type: ignore[attr-defined]
    (tmp_path / "models.toml").write_text(f'[embedders.mine]\nengine = "sentence-transformers"\npath = "{folder}"\n')
    mine = EMBEDDERS.find(tmp_path / "models.toml", "mine")
    assert mine.identity() == spec.identity().replace("all-minilm-l6-v2", "mine")
    assert mine.open("fast").identity == mine.identity()


def test_a_folder_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "models.toml").write_text('[embedders.mine]\nengine = "sentence-transformers"\npath = "."\n')
    spec = EMBEDDERS.find(tmp_path / "models.toml", "mine")
    assert spec.identity().startswith("mine@")
    with pytest.raises(InputError, match="sentence-transformers can't load"):
        spec.open("fast")
