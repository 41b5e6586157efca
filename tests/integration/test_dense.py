"""Dense and hybrid corpora: exact, resumed after a kill, and refused where the model is another one."""

import hashlib
import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cotrail.core.ports.encoders import Side
from cotrail.core.ports.language_model import Profile
from cotrail.core.ports.retriever import Corpus
from cotrail.core.questions import Hit, ListPlace, Paragraph
from cotrail.engines.retrieval.engine import NewIndex
from cotrail.engines.retrieval.stores import FolderStore
from cotrail.errors import CorpusError, InputError, NotInstalledError, StepError, UnknownNameError
from cotrail.services.library.corpora import index_again
from tests.searching import search

pytest.importorskip("faiss", reason="faiss isn't installed")

from cotrail.engines.retrieval import embeddings  # behind the check

WORDS = ("river", "sea", "salt", "boat", "stone", "north", "ink", "paper", "pen", "wood", "pulp", "lamp", "tower")


class Embedder:
    """A made-up one: a text's embedding is drawn from its digest; queries are near the text that they repeat."""

    def __init__(self) -> None:
        self.name = "made-up"
        self.digest = "1"
        self.embedded: list[str] = []
        self.fail_after = 10**9

    def find(self, _path: Path, name: str) -> "Embedder":
        if name != self.name:
            raise UnknownNameError(f"there is no embedder {name}")
        return self

    def identity(self) -> str:
        return f"{self.name}@{self.digest}"

    def check_profile(self, profile: Profile) -> None:
        assert profile == "deterministic"

    def open(self, _profile: Profile) -> "Embedder":
        return self

    def embed(self, texts: Sequence[str], _side: Side) -> list[Any]:
        if len(self.embedded) + len(texts) > self.fail_after:
            raise OSError("killed")
        self.embedded += texts
        return [vector(text) for text in texts]


@cache
def vector(text: str) -> Any:
    drawn = np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")).normal(size=24)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> Embedder:
    made = Embedder()
    monkeypatch.setattr(embeddings, "EMBEDDERS", made)
    return made


def paragraphs(count: int, seed: int = 7) -> Iterator[Paragraph]:
    """Of few words, so that many are equal in text, and so in their similarity to anything."""
    chance = random.Random(seed)
    for number in range(count):
        text = " ".join(chance.choices(WORDS, k=2))
        yield Paragraph(id=f"p{chance.randrange(10**6)}-{number}", title="", text=text)


def built(folder: Path, given: Sequence[Paragraph], **settings: Any) -> Corpus:
    store = FolderStore(folder)
    store.build("mine", given, new=NewIndex(engine="dense", settings={"model": "made-up", **settings}))
    return store.open("mine")


def by_hand(given: Sequence[Paragraph], query: str, count: int) -> list[tuple[str, float]]:
    """The best by the product of all pairs, equal ones by id."""
    asked = vector(query).astype(np.float64)
    scored = [(round(float(np.dot(asked, vector(each.statement).astype(np.float64))), 6), each.id) for each in given]
    return [(id_, score) for score, id_ in sorted(scored, key=lambda each: (-each[0], each[1]))[:count]]


def ranked(hits: Sequence[Hit]) -> list[tuple[str, float]]:
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    return [(hit.paragraph.id, hit.score) for hit in hits]


def test_it_finds_what_a_comparison_with_every_paragraph_finds(embedder: Embedder, tmp_path: Path) -> None:
    given = list(paragraphs(10_000))
    corpus = built(tmp_path, given)
    for number in range(25):
        query = f"question {number}"
        for count in (1, 3, 40):
            assert ranked(search(corpus, query, count)) == by_hand(given, query, count)
    assert ranked(search(corpus, "all", 20_000)) == by_hand(given, "all", 20_000)


def test_an_approximate_index_has_the_recall_that_it_states(embedder: Embedder, tmp_path: Path) -> None:
    given = [Paragraph(id=f"{n:05}", title="", text=f"text {n}") for n in range(4_000)]
    exact, corpus = built(tmp_path / "exact", given), built(tmp_path / "near", given, recall=0.9)
    stated = FolderStore(tmp_path / "near").manifests()["mine"].built
    assert 0.9 <= stated["recall"] <= 1
    assert stated["read"] < stated["lists"]
    shares = []
    for number in range(0, 4_000, 37):
        found, wanted = (dict(ranked(search(each, f"text {number}", 10))) for each in (corpus, exact))
        assert wanted.items() >= {id_: found[id_] for id_ in found.keys() & wanted.keys()}.items()
        shares.append(len(found.keys() & wanted.keys()) / 10)
    assert abs(sum(shares) / len(shares) - stated["recall"]) < 0.05
    assert len(search(corpus, "text 1", 3_500)) == 3_500
    assert corpus.revision != exact.revision
    assert built(tmp_path / "again", given, recall=0.9).revision == corpus.revision


@pytest.mark.parametrize("count", [0, 1, 9, 60])
def test_a_small_corpus_can_be_approximate_too(count: int, embedder: Embedder, tmp_path: Path) -> None:
    given = list(paragraphs(count))
    corpus = built(tmp_path, given, recall=1.0)
    assert ranked(search(corpus, "river", 12)) == by_hand(given, "river", 12)


@pytest.mark.parametrize("recall", [0, 1.01, "most", float("nan")])
def test_a_recall_that_there_is_not_is_refused(recall: Any, embedder: Embedder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="recall"):
        built(tmp_path, list(paragraphs(3)), recall=recall)


def test_lists_of_another_build_are_refused(embedder: Embedder, tmp_path: Path) -> None:
    given = list(paragraphs(300))
    built(tmp_path / "a", given, recall=0.5)
    built(tmp_path / "b", given[:200], recall=0.5)
    [lists] = (tmp_path / "a").rglob("lists.faiss")
    for [content] in [[file.read_bytes() for file in (tmp_path / "b").rglob("lists.faiss")], [b"cut off"]]:
        lists.write_bytes(content)
        with pytest.raises(CorpusError, match="build it again"):
            search(FolderStore(tmp_path / "a").open("mine"), "river", 5)


def test_an_id_of_any_text_and_its_paragraph_come_back_whole(embedder: Embedder, tmp_path: Path) -> None:
    odd = [Paragraph(id=id_, title="É", text=f"text {id_}") for id_ in ("ü/1", "二", "a b", "x" * 900)]
    corpus = built(tmp_path, odd)
    assert {hit.paragraph for hit in search(corpus, "text", 9)} == set(odd)
    assert corpus.titled("É") == tuple(sorted(odd, key=lambda each: each.id))
    assert corpus.paragraphs(["二"]) == {"二": odd[1]}


def test_fusion_is_that_of_both_lists(embedder: Embedder, tmp_path: Path) -> None:
    given = list(paragraphs(400))
    corpus = built(tmp_path, given, retriever="hybrid", rank_constant=10)
    query = "river stone"
    lists = [search(corpus, query, 100, retriever=way) for way in ("bm25", "dense")]
    shares: dict[str, float] = {}
    for hits in lists:
        for hit in hits:
            shares[hit.paragraph.id] = shares.get(hit.paragraph.id, 0.0) + 1 / (10 + hit.rank)
    expected = sorted(shares.items(), key=lambda each: (-each[1], each[0]))[:15]
    assert ranked(search(corpus, query, 15)) == expected


def test_a_search_says_how_it_is_made(embedder: Embedder, tmp_path: Path) -> None:
    corpus = built(tmp_path, list(paragraphs(400)))
    weights = {"bm25": 1.0, "dense": 3.0}
    lists = {
        way: {hit.paragraph.id: hit for hit in search(corpus, "river stone", 100, retriever=way)} for way in weights
    }
    for retriever in ("hybrid", weights):
        for hit in search(corpus, "river stone", 30, retriever=retriever):
            places = [(way, found[hit.paragraph.id]) for way, found in lists.items() if hit.paragraph.id in found]
            expected = [ListPlace(list=way, rank=each.rank, score=each.score) for way, each in places]
            assert list(hit.lists) == expected
    alone = search(corpus, "river stone", 30, retriever={"dense": 1.0})
    assert [hit.paragraph for hit in alone] == [hit.paragraph for hit in search(corpus, "river stone", 30)]
    assert not any(hit.lists for hit in search(corpus, "river stone", 30))


@pytest.mark.parametrize("retriever", ["late", {"late": 1.0}, {"bm25": -1.0}, {}])
def test_a_retriever_that_there_is_not_is_refused(retriever: Any, embedder: Embedder, tmp_path: Path) -> None:
    corpus = built(tmp_path, list(paragraphs(3)))
    with pytest.raises(StepError, match="an option of the search can't be used"):
        search(corpus, "river", 3, retriever=retriever)


def test_titles_restrict_or_filter(embedder: Embedder, tmp_path: Path) -> None:
    given = [Paragraph(id=f"{n:03}", title=f"T{n % 5}", text=f"river {n}") for n in range(200)]
    for way in ("dense", "hybrid"):
        corpus = built(tmp_path / way, given, retriever=way)
        only = search(corpus, "river 7", 200, ("T2",))
        assert {hit.paragraph.title for hit in only} == {"T2"}
        assert len(only) == 40
        after = search(corpus, "river 7", 30, ("t2",), scope="after")
        best = [hit for hit in search(corpus, "river 7", 30) if hit.paragraph.title == "T2"]
        assert [hit.paragraph for hit in after] == [hit.paragraph for hit in best]
    assert search(corpus, "river", 5, ("Nowhere",)) == ()


def test_titles_alone_and_bm25_are_searched_by_words(embedder: Embedder, tmp_path: Path) -> None:
    given = [Paragraph(id="a", title="Ink", text="Paper."), Paragraph(id="b", title="Pen", text="Ink.")]
    corpus = built(tmp_path, given)
    before = len(embedder.embedded)
    assert [hit.paragraph.id for hit in search(corpus, "ink", 5, field="title")] == ["a"]
    assert len(search(corpus, "ink", 5, retriever="bm25")) == 2
    assert len(embedder.embedded) == before


@pytest.mark.parametrize("way", ["bm25", "dense", "hybrid"])
def test_nothing_asked_or_nothing_there_finds_nothing(way: str, embedder: Embedder, tmp_path: Path) -> None:
    assert search(built(tmp_path / "a", [], retriever=way), "river", 5) == ()
    corpus = built(tmp_path / "b", list(paragraphs(3)), retriever=way)
    assert search(corpus, " ", 5) == search(corpus, "river", 0) == ()


def test_equal_texts_count_once_where_that_is_asked(embedder: Embedder, tmp_path: Path) -> None:
    corpus = built(tmp_path, list(paragraphs(500)))
    texts = [hit.paragraph.text for hit in search(corpus, "river", 20, distinct=True)]
    assert len(set(texts)) == len(texts) == 20


def test_a_build_that_was_killed_embeds_only_the_rest(embedder: Embedder, tmp_path: Path) -> None:
    given = [Paragraph(id=f"{n:04}", title="", text=f"text {n}") for n in range(1000)]
    embedder.fail_after = 600
    with pytest.raises(CorpusError, match="killed"):
        built(tmp_path, given)
    assert FolderStore(tmp_path).manifests() == {}
    assert len(embedder.embedded) == 2 * embeddings.AT_ONCE
    embedder.fail_after = 10**9
    corpus = built(tmp_path, given)
    assert sorted(embedder.embedded) == sorted(each.statement for each in given)
    assert ranked(search(corpus, "q", 5)) == by_hand(given, "q", 5)


def test_a_grown_corpus_costs_only_what_is_new(embedder: Embedder, tmp_path: Path) -> None:
    given = [Paragraph(id=f"{n:04}", title="", text=f"text {n}") for n in range(300)]
    first = built(tmp_path, given[:200]).revision
    second = built(tmp_path, given).revision
    assert first != second
    assert len(embedder.embedded) == 300
    assert built(tmp_path, given).revision == second
    assert len(embedder.embedded) == 300


def test_another_model_and_other_settings_are_other_revisions(embedder: Embedder, tmp_path: Path) -> None:
    given = list(paragraphs(20))
    revisions = {built(tmp_path / way, given, retriever=way).revision for way in ("dense", "hybrid")}
    embedder.digest = "2"
    revisions.add(built(tmp_path / "other", given).revision)
    assert len(revisions) == 3


def test_a_model_that_changed_under_the_index_is_refused(embedder: Embedder, tmp_path: Path) -> None:
    built(tmp_path, list(paragraphs(20)))
    embedder.digest = "2"
    corpus = FolderStore(tmp_path).open("mine")
    with pytest.raises(CorpusError, match="isn't the one that the corpus was indexed with"):
        search(corpus, "river", 3)
    assert search(corpus, "river", 3, retriever="bm25")


@pytest.mark.parametrize("file", ["vectors.f32", "ids.txt"])
def test_an_index_that_lacks_embeddings_is_not_searched(file: str, embedder: Embedder, tmp_path: Path) -> None:
    built(tmp_path, list(paragraphs(20)))
    [vectors] = tmp_path.glob(f"mine/*/{file}")
    vectors.write_bytes(vectors.read_bytes()[: -96 if file == "vectors.f32" else -1])
    with pytest.raises(CorpusError, match="embeddings are missing"):
        FolderStore(tmp_path).open("mine")


@pytest.mark.parametrize("share", [0, 0.5])
def test_embeddings_that_are_too_short_are_not_searched(share: float, embedder: Embedder, tmp_path: Path) -> None:
    built(tmp_path, list(paragraphs(20)))
    [vectors] = tmp_path.glob("mine/*/vectors.f32")
    content = vectors.read_bytes()
    vectors.write_bytes(content[: int(share * len(content))])
    corpus = FolderStore(tmp_path).open("mine")
    with pytest.raises(CorpusError, match="embeddings of the corpus are missing"):
        search(corpus, "river", 3)
    assert search(corpus, "river", 3, retriever="bm25")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": "nobody"}, "there is no embedder nobody"),
        ({"model": "made-up", "retriever": "late"}, "retriever"),
        ({"model": "made-up", "rank_constant": -1}, "rank_constant"),
        ({}, "model"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(
    settings: dict[str, Any], said: str, embedder: Embedder, tmp_path: Path
) -> None:
    with pytest.raises((InputError, UnknownNameError), match=said):
        FolderStore(tmp_path).build("mine", paragraphs(3), new=NewIndex(engine="dense", settings=settings))
    assert FolderStore(tmp_path).manifests() == {}


def test_a_real_embedder_finds_what_has_no_word_of_the_query(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers isn't installed")
    store = FolderStore(tmp_path)
    given = [
        Paragraph(id="a", title="Aristotle", text="A Greek philosopher of the Classical period."),
        Paragraph(id="l", title="Epson HX-20", text="The first laptop computer, invented in 1980."),
        Paragraph(id="s", title="Salt", text="Sodium chloride, in the sea and in mines."),
    ]
    try:
        store.build("mine", given, new=NewIndex(engine="dense", settings={"model": "all-minilm-l6-v2"}))
    except NotInstalledError as error:
        pytest.skip(str(error))
    corpus = store.open("mine")
    assert store.manifests()["mine"].built == {}
    longer = [*given, Paragraph(id="z", title="Words", text="word " * 2_000)]
    for name in ("first", "kept"):
        built = store.build(name, longer, new=NewIndex(engine="dense", settings={"model": "all-minilm-l6-v2"}))
        assert built.built == {"cut": 1}
    assert search(store.open("kept"), "portable machines", 1)[0].paragraph.id == "l"
    assert search(corpus, "portable machines", 3, retriever="bm25") == ()
    assert search(corpus, "portable machines", 3)[0].paragraph.id == "l"
    assert [search(corpus, "portable machines", 3) for _ in range(2)] == [search(corpus, "portable machines", 3)] * 2


def test_a_corpus_is_indexed_again_in_another_way(
    monkeypatch: pytest.MonkeyPatch, embedder: Embedder, tmp_path: Path
) -> None:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    given = [Paragraph(id=f"{n:03}", title="", text=f"text {n}") for n in range(90)]
    FolderStore(tmp_path / "corpora").build("mine", given)
    settings = {"model": "made-up", "recall": 1.0}
    again = index_again("mine", "mine", NewIndex(settings=settings))
    assert (again.paragraphs, again.recall) == (90, 1.0)
    assert index_again("mine", "other", NewIndex(settings=settings)).revision == again.revision
    other = FolderStore(tmp_path / "corpora").open("other")
    assert ranked(search(other, "q", 5)) == by_hand(given, "q", 5)
    assert len(embedder.embedded) == 90 + 2 * 90 + 1  # each text once, its beginning for each index, and a query
    with pytest.raises(UnknownNameError, match="nowhere"):
        index_again("nowhere", "mine")
    assert index_again("other", "words").revision != again.revision
