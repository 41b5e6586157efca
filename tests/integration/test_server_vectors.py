"""Corpora with embeddings on a search server: equal to those in a folder, and refused where the server has no kNN."""

import random
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.search_servers import Running
from cotrail.core.questions import Paragraph
from cotrail.engines.retrieval.elasticsearch.client import ElasticsearchClient
from cotrail.engines.retrieval.elasticsearch.index import indexes, remove
from cotrail.engines.retrieval.engine import NewIndex
from cotrail.engines.retrieval.search_server import SearchServer
from cotrail.engines.retrieval.stores import FolderStore, corpus_store
from cotrail.errors import CorpusError, InputError, StepError
from tests.integration.test_dense import WORDS, Embedder, by_hand, paragraphs, ranked
from tests.integration.test_filters import CASES, FIELDS
from tests.integration.test_filters import given as filed
from tests.search_servers import OSMEM
from tests.searching import search

pytest.importorskip("faiss", reason="faiss isn't installed")

from cotrail.engines.retrieval import embeddings  # behind the check

NEW = NewIndex(settings={"model": "made-up", "retriever": "hybrid"})


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> Embedder:
    made = Embedder()
    monkeypatch.setattr(embeddings, "EMBEDDERS", made)
    return made


@pytest.fixture
def server(search_server: Running) -> Iterator[SearchServer]:
    prefix = f"test-{secrets.token_hex(4)}-"
    there = SearchServer(urls=(search_server.url,), prefix=prefix)
    yield there
    client = ElasticsearchClient(there)
    for name in indexes(client, f"{prefix}*"):
        remove(client, name)


@pytest.mark.parametrize("settings", [{}, {"model": "made-up", "retriever": "hybrid"}], ids=["words", "hybrid"])
def test_filters_let_through_what_they_do_in_a_folder(
    settings: dict[str, Any], search_server: Running, embedder: Embedder, server: SearchServer, tmp_path: Path
) -> None:
    if settings and search_server.name != "elasticsearch":
        pytest.skip("this server has no kNN")
    local, store = FolderStore(tmp_path / "folder"), corpus_store(tmp_path / "home", server)
    new = NewIndex(settings={**settings, "fields": FIELDS})
    local.build("mine", filed(), new)
    store.build("mine", filed(), new)
    here, there = local.open("mine"), store.open("mine")
    ways: list[dict[str, Any]] = [{"retriever": way} for way in ("bm25", "dense", "hybrid")] if settings else [{}]
    for way in ways:
        for filter_ in CASES:
            for titles in ((), ("T2",)):
                hits = [search(each, "river 7", 300, titles, filter=filter_, **way) for each in (here, there)]
                assert {hit.paragraph for hit in hits[0]} == {hit.paragraph for hit in hits[1]}, (filter_, way)
                # osmem ranks otherwise than Lucene.
                if way != {"retriever": "hybrid"} and search_server.name != OSMEM:
                    assert [hit.score for hit in hits[0]] == pytest.approx([hit.score for hit in hits[1]], rel=1e-4)
    for wrong in ("author:Ada", "(((", "lang:en AND NOT year:1999"):
        with pytest.raises(StepError):
            search(there, "river", 5, filter=wrong)


@pytest.fixture
def comparing(search_server: Running) -> None:
    if search_server.name != "elasticsearch":
        pytest.skip("this server has no kNN")


@pytest.mark.usefixtures("comparing")
def test_ranks_and_scores_are_those_of_a_folder(embedder: Embedder, server: SearchServer, tmp_path: Path) -> None:
    given = list(paragraphs(3_000)) + [Paragraph(id=f"t{n}", title="Sea", text=f"sea {n}") for n in range(40)]
    local, store = FolderStore(tmp_path / "folder"), corpus_store(tmp_path / "home", server)
    local.build("mine", given, new=NewIndex(engine="dense", settings=NEW.settings))
    store.build("mine", given, new=NEW)
    here, there = local.open("mine"), store.open("mine")
    chance = random.Random(3)
    for _ in range(80):
        query, count = " ".join(chance.choices(WORDS, k=3)), chance.choice((1, 4, 15))
        assert ranked(search(there, query, count, retriever="dense")) == by_hand(given, query, count)
        for hit, other in zip(search(there, query, 5), search(here, query, 5), strict=False):
            assert {each.list for each in hit.lists} <= {"bm25", "dense"}
            assert [each for each in hit.lists if each.list == "dense"] == [
                each for each in other.lists if each.list == "dense"
            ]
    only = search(there, "sea", 100, ("Sea",), retriever="dense")
    assert ranked(only) == ranked(search(here, "sea", 100, ("Sea",), retriever="dense"))
    assert len(only) == 40
    assert len(search(there, "anything", 4_000, retriever="dense")) == len(given)


@pytest.mark.usefixtures("comparing")
def test_what_was_embedded_is_kept_and_a_changed_model_is_refused(
    embedder: Embedder, server: SearchServer, tmp_path: Path
) -> None:
    store, given = corpus_store(tmp_path, server), list(paragraphs(300))
    first = store.build("mine", given, new=NEW)
    embedded = len(embedder.embedded)
    assert store.build("again", given, new=NEW).revision == first.revision
    assert len(embedder.embedded) == embedded
    embedder.digest = "2"
    changed = store.open("mine")
    with pytest.raises(CorpusError, match="isn't the one that the corpus was indexed with"):
        search(changed, "river", 3)
    assert search(changed, "river", 3, retriever="bm25")
    assert store.manifests()["mine"].settings == {"model": "made-up", "retriever": "hybrid", "rank_constant": 60}


@pytest.mark.usefixtures("comparing")
def test_a_build_that_was_killed_leaves_nothing_and_continues(
    embedder: Embedder, server: SearchServer, tmp_path: Path
) -> None:
    store, given = (
        corpus_store(tmp_path, server),
        [Paragraph(id=f"{n}", title="", text=f"text {n}") for n in range(600)],
    )
    embedder.fail_after = 400
    with pytest.raises(OSError, match="killed"):
        store.build("mine", given, new=NEW)
    assert "mine" not in store.manifests()
    embedder.fail_after = 10**9
    store.build("mine", given, new=NEW)
    assert len([text for text in embedder.embedded if text != "length"]) == 600
    assert len(search(store.open("mine"), "text 7", 5)) == 5


def test_a_server_without_knn_says_so(
    embedder: Embedder, server: SearchServer, search_server: Running, tmp_path: Path
) -> None:
    if search_server.name != "opensearch":
        pytest.skip("this server has kNN, or takes any field")
    store = corpus_store(tmp_path, server)
    with pytest.raises(InputError, match=r"takes no embeddings \(.*knn_vector.*OpenSearch its k-NN plugin"):
        store.build("mine", list(paragraphs(10)), new=NEW)
    assert "mine" not in store.manifests()


@pytest.mark.parametrize(
    ("settings", "said"), [({"model": "nobody"}, "no embedder nobody"), ({"retriever": "dense"}, "model")]
)
def test_settings_that_cannot_be_used_are_refused(
    settings: dict[str, str], said: str, embedder: Embedder, server: SearchServer, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        corpus_store(tmp_path, server).build("mine", paragraphs(3), new=NewIndex(settings=settings))
