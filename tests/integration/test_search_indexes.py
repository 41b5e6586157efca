"""Indexes on a real search server: of several shards, on servers that score otherwise, and those that others fill."""

# ruff: noqa: F401, F811 - fixtures are imported

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cotrail.core.ports.retriever import Retriever
from cotrail.core.questions import Hit, Paragraph
from cotrail.engines.retrieval.elasticsearch.client import ElasticsearchClient, FaultyError, MissingError
from cotrail.engines.retrieval.elasticsearch.index import K1
from cotrail.engines.retrieval.elasticsearch.retriever import ElasticsearchRetriever
from cotrail.engines.retrieval.search_server import ExistingIndex, SearchServer
from cotrail.engines.retrieval.stores import build_index, open_index
from cotrail.errors import CorpusChangedError, CorpusError, InputError, StepError, UnknownNameError
from tests.integration.test_elasticsearch import (
    INK,
    PAPER,
    PEN,
    Gate,
    Reach,
    found,
    gate,
    impatient,
    made,
    prefix,
    reach,
    url,
)
from tests.searching import search
from tests.unit.docstrings import passages, questions

MAPPINGS: dict[str, Any] = {
    "properties": {
        "head": {"type": "text", "analyzer": "english", "fields": {"raw": {"type": "keyword"}}},
        "content": {"properties": {"body": {"type": "text", "analyzer": "english"}}},
        "number": {"type": "keyword"},
    }
}


@pytest.fixture
def there(url: str) -> ElasticsearchClient:
    """A client of a server that is Lucene inside."""
    own = ElasticsearchClient(SearchServer(urls=(url,)))
    if own.ask(lambda api: api.info())["name"] == "osmem-node":
        pytest.skip("osmem ranks otherwise than Lucene, and no real server is at hand")
    return own


# One scale of scores.


def like_opensearch_3(path: str, body: bytes) -> bytes:
    """Scores without the factor k1 + 1: every query counts so much less."""
    if "_msearch" not in path:
        return body
    lines = [msgspec.json.decode(line) for line in body.splitlines()]
    for searched in lines[1::2]:
        searched["query"] = {"bool": {"must": [searched["query"]], "boost": 1 / (1 + K1)}}
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def searches(corpus: Retriever) -> list[tuple[Hit, ...]]:
    return [
        search(corpus, "ink on paper", 3),
        search(corpus, "a pen for paper", 3, field="title"),
        search(corpus, "ink paper", 3, ("Pen", "Paper")),
        search(corpus, "ink", 3, ("Pen",), scope="after"),
        search(corpus, "wood ink", 3, ("Ink", "Paper"), scope="after"),
        search(corpus, "writes", 3, ("The",), scope="after"),
    ]


def test_scores_are_the_same_on_a_server_that_leaves_a_factor_out(
    there: ElasticsearchClient, gate: Gate, reach: Reach
) -> None:
    made(reach())
    gate.rewritten = like_opensearch_3
    plain, scaled = reach().by_words("corpus"), reach(gate.url).by_words("corpus")
    assert searches(plain) == searches(scaled)
    assert plain._factor == 1
    assert scaled._factor == pytest.approx(1 + K1)


def test_scores_are_those_of_the_index_in_a_folder(there: ElasticsearchClient, reach: Reach, tmp_path: Path) -> None:
    build_index([PAPER, INK, PEN], tmp_path / "corpus")
    in_folder, in_server = searches(open_index(tmp_path / "corpus")), searches(made(reach()))
    assert [[hit.paragraph.id for hit in hits] for hits in in_folder] == [
        [hit.paragraph.id for hit in hits] for hits in in_server
    ]
    scores = [[hit.score for hits in each for hit in hits] for each in (in_folder, in_server)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-5)


# Shards and copies.


def test_several_shards_count_words_together_and_find_the_same(there: ElasticsearchClient, reach: Reach) -> None:
    paragraphs = passages()[:2000]
    one = made(reach(), paragraphs)
    several = reach(index={"number_of_shards": 3})
    several.build("several", paragraphs)
    corpus = several.open("several")
    assert corpus.revision == one.revision
    for query in questions(paragraphs)[:100]:
        expected, hits = search(one, query, 10), search(corpus, query, 10)
        assert [hit.paragraph.id for hit in hits] == [hit.paragraph.id for hit in expected]
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected], rel=1e-5)


def test_an_index_has_the_settings_that_are_configured(there: ElasticsearchClient, reach: Reach, prefix: str) -> None:
    reach(index={"number_of_shards": 2, "number_of_replicas": 1, "max_result_window": 20_000}).build("corpus", [INK])
    name = f"{prefix}corpus"
    (index,) = there.ask(lambda api: api.indices.get_settings(index=name), dict[str, Any]).values()
    told = index["settings"]["index"]
    assert [told[name] for name in ("number_of_shards", "number_of_replicas", "max_result_window")] == [
        "2",
        "1",
        "20000",
    ]


def test_a_setting_that_the_server_does_not_know_is_refused_and_leaves_nothing(
    there: ElasticsearchClient, reach: Reach
) -> None:
    with pytest.raises(CorpusError, match="unheard"):
        reach(index={"unheard.of": 1}).build("corpus", [INK])
    assert reach().manifests() == {}


# Indexes that others fill.


class Filled:
    """An index of three shards that isn't cotrail's."""

    def __init__(self, there: ElasticsearchClient, name: str) -> None:
        self.there, self.name = there, name
        settings = {"number_of_shards": 3, "number_of_replicas": 0}
        there.ask(lambda api: api.indices.create(index=name, settings=settings, mappings=MAPPINGS))
        for paragraph in (PAPER, INK, PEN):
            self.write(paragraph.id, paragraph.title, paragraph.text)

    def write(self, id_: str, title: str, text: str) -> None:
        document = {"head": title, "content": {"body": text}, "number": f"n{id_}"}
        self.there.ask(lambda api: api.index(index=self.name, id=id_, document=document, refresh=True))

    def delete(self, id_: str) -> None:
        self.there.ask(lambda api: api.delete(index=self.name, id=id_, refresh=True))


@pytest.fixture
def filled(there: ElasticsearchClient, prefix: str) -> Filled:
    return Filled(there, f"{prefix}own")


@pytest.fixture
def existing(filled: Filled, reach: Reach) -> Callable[..., ElasticsearchRetriever]:
    """Opens the index as a corpus."""

    def opened(**fields: str) -> ElasticsearchRetriever:
        wanted = {"title": "head", "text": "content.body", "whole_title": "head.raw"} | fields
        return reach(corpora={"own": ExistingIndex(index=filled.name, **wanted)}).by_words("own")

    return opened


Existing = Callable[..., ElasticsearchRetriever]


def test_an_index_of_others_is_searched_as_ours_is(existing: Existing, reach: Reach) -> None:
    ours, corpus = made(reach()), existing()
    assert corpus.manifest.paragraphs == 3
    for hits, expected in zip(searches(corpus), searches(ours), strict=True):
        assert [hit.paragraph for hit in hits] == [hit.paragraph for hit in expected]
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected])
    assert corpus.titled("Ink") == (INK,)
    assert corpus.paragraphs(["a", "nowhere", "b"]) == {"a": INK, "b": PAPER}


def test_ids_may_be_in_a_field_of_their_own(existing: Existing) -> None:
    corpus = existing(id="number")
    assert found(corpus, "ink") == ["na", "nc"]
    assert list(corpus.paragraphs(["na", "a"])) == ["na"]


def test_equal_scores_of_others_are_ordered_by_id_also_at_the_cut(existing: Existing, filled: Filled) -> None:
    ids = [f"{i * 7 % 30:02}" for i in range(30)]
    for id_ in ids:
        filled.write(id_, "Plum", "plum fig")
    corpus = existing()
    for count in (1, 5, 29, 100):
        assert found(corpus, "fig", count) == sorted(ids)[:count]


def test_whoever_writes_to_the_index_ends_its_searches_until_it_is_opened_anew(
    existing: Existing, filled: Filled
) -> None:
    changes: list[Callable[[], None]] = [
        lambda: filled.write("d", "Quill", "A quill writes with ink."),
        lambda: filled.write("a", INK.title, INK.text),
        lambda: filled.delete("d"),
    ]
    corpora = [existing()]
    for change in changes:
        change()
        with pytest.raises(CorpusChangedError, match="was written to"):
            search(corpora[-1], "ink", 3)
        corpora.append(existing())
        assert found(corpora[-1], "ink", 1) == ["a"]
    assert len({corpus.revision for corpus in corpora}) == 4
    assert existing().revision == corpora[-1].revision
    assert existing(text="head").revision != corpora[-1].revision


def test_an_index_made_anew_is_another_though_it_holds_the_same(
    existing: Existing, filled: Filled, there: ElasticsearchClient
) -> None:
    corpus = existing()
    there.ask(lambda api: api.indices.delete(index=filled.name))
    with pytest.raises(CorpusChangedError):
        search(corpus, "ink", 3)
    with pytest.raises(UnknownNameError, match="no corpus 'own'"):
        existing()
    Filled(there, filled.name)
    assert existing().revision != corpus.revision


def test_without_a_field_of_whole_titles_titles_are_refused(filled: Filled, reach: Reach) -> None:
    own = ExistingIndex(index=filled.name, title="head", text="content.body")
    corpus = reach(corpora={"own": own}).open("own")
    assert found(corpus, "ink", 3, ()) == ["a", "c"]
    assert [hit.paragraph for hit in search(corpus, "ink", 3, ("Pen",), scope="after")] == [PEN]
    for look_up in (lambda: corpus.titled("Ink"), lambda: search(corpus, "ink", 3, ("Ink",))):
        with pytest.raises(StepError, match="whole_title"):
            look_up()


@pytest.mark.parametrize(
    "fields", [{"title": "head.raw"}, {"text": "content"}, {"text": "nowhere"}, {"whole_title": "head"}, {"id": "head"}]
)
def test_a_field_that_can_not_be_searched_so_is_named(existing: Existing, fields: dict[str, str]) -> None:
    (name,) = fields.values()
    with pytest.raises(CorpusError, match=f"no field '{name}' of the type"):
        existing(**fields)


def test_nothing_is_ever_written_to_an_index_of_others(filled: Filled, reach: Reach) -> None:
    own = ExistingIndex(index=filled.name, title="head", text="content.body")
    store = reach(corpora={"own": own})
    with pytest.raises(InputError, match=r"search\.toml"):
        store.build("own", [INK])
    with pytest.raises(InputError, match=r"search\.toml"):
        store.remove("own")
    assert store.extent("own").bytes
    assert list(store.manifests()) == ["own"]


def test_a_shard_that_is_not_there_is_waited_for(
    existing: Existing, gate: Gate, filled: Filled, reach: Reach, impatient: None
) -> None:
    own = ExistingIndex(index=filled.name, title="head", text="content.body")
    corpus = reach(gate.url, corpora={"own": own}).open("own")
    found(corpus, "ink")
    told = {"indices": {filled.name: {"uuid": "u", "shards": {"0": [{"routing": {"primary": True}}]}}}}
    gate.faults = [None, msgspec.json.encode(told)]
    assert found(corpus, "ink") == ["a", "c"]
    assert gate.faults == []


class Aliased:
    """An alias of the index that shows a part of it."""

    def __init__(self, there: ElasticsearchClient, filled: Filled, reach: Reach) -> None:
        self.there, self.index, self.reach = there, filled.name, reach
        self.name = f"{filled.name}-shown"

    def show(self, *numbers: str) -> None:
        add = {"index": self.index, "alias": self.name, "filter": {"terms": {"number": numbers}}}
        self.there.ask(lambda api: api.indices.update_aliases(actions=[{"add": add}]))

    def open(self) -> ElasticsearchRetriever:
        own = ExistingIndex(index=self.name, title="head", text="content.body")
        return self.reach(corpora={"own": own}).by_words("own")


def test_an_alias_that_shows_other_documents_is_another_corpus(
    there: ElasticsearchClient, filled: Filled, reach: Reach
) -> None:
    alias, shown = Aliased(there, filled, reach), ("na", "nb", "nc")
    corpora: list[ElasticsearchRetriever] = []
    for count in (1, 2, 3):
        alias.show(*shown[:count])
        if corpora:
            with pytest.raises(CorpusChangedError, match=r"was changed \(its alias"):
                search(corpora[-1], "ink", 3)
        corpora.append(alias.open())
        assert len(found(corpora[-1], "ink paper", 3)) <= count
        assert corpora[-1].manifest.paragraphs == count
    assert len({corpus.revision for corpus in corpora}) == 3
    alias.show(*shown[:2])
    assert alias.open().revision == corpora[1].revision


def test_a_field_or_a_description_that_is_added_to_the_mapping_counts_where_it_may_change_a_search(
    existing: Existing, filled: Filled, there: ElasticsearchClient
) -> None:
    corpus = existing()
    there.ask(lambda api: api.indices.put_mapping(index=filled.name, meta={"owner": "somebody"}))
    assert found(corpus, "ink", 1) == ["a"]
    there.ask(lambda api: api.indices.put_mapping(index=filled.name, properties={"new": {"type": "keyword"}}))
    with pytest.raises(CorpusChangedError, match="was changed"):
        search(corpus, "ink", 3)
    assert existing().revision != corpus.revision


def test_synonyms_that_are_kept_elsewhere_are_a_part_of_the_corpus(
    there: ElasticsearchClient, prefix: str, reach: Reach
) -> None:
    sets, name = f"{prefix}synonyms", f"{prefix}synonymous"

    def rules(*synonyms: str) -> None:
        there.ask(lambda api: api.synonyms.put_synonym(id=sets, synonyms_set=[{"synonyms": each} for each in synonyms]))

    try:
        rules("ink, dye")
    except (FaultyError, InputError, MissingError, StepError):
        pytest.skip("this server keeps no sets of synonyms")
    filters = {"same": {"type": "synonym_graph", "synonyms_set": sets, "updateable": True}}
    analyzers = {"found": {"tokenizer": "standard", "filter": ["lowercase", "same"]}}
    text = {"type": "text", "analyzer": "standard", "search_analyzer": "found"}
    analysis = {"analysis": {"filter": filters, "analyzer": analyzers}, "number_of_replicas": 0}
    mappings = {"properties": {"head": text, "body": text}}
    there.ask(lambda api: api.indices.create(index=name, settings=analysis, mappings=mappings))
    there.ask(lambda api: api.index(index=name, id="a", document={"head": "Ink", "body": "ink"}, refresh=True))
    own = ExistingIndex(index=name, title="head", text="body")
    corpus = reach(corpora={"own": own}).open("own")
    assert found(corpus, "dye", 1) == ["a"]
    rules("ink, water")
    with pytest.raises(CorpusChangedError, match="its synonyms"):
        search(corpus, "dye", 1)
    assert reach(corpora={"own": own}).open("own").revision != corpus.revision
    there.ask(lambda api: api.indices.delete(index=name))
    there.ask(lambda api: api.synonyms.delete_synonym(id=sets))


@pytest.mark.parametrize(
    ("mapping", "field", "why"),
    [
        ({"type": "nested", "properties": {"body": {"type": "text"}}}, "content.body", "within nested objects"),
        ({"properties": {"body": {"type": "text", "index": False}}}, "content.body", "stored and not indexed"),
    ],
)
def test_a_field_in_which_nothing_would_be_found_is_refused(
    there: ElasticsearchClient, prefix: str, reach: Reach, mapping: dict[str, Any], field: str, why: str
) -> None:
    name = f"{prefix}hidden"
    mappings = {"properties": {"head": {"type": "text"}, "content": mapping}}
    there.ask(lambda api: api.indices.create(index=name, mappings=mappings))
    own = ExistingIndex(index=name, title="head", text=field)
    with pytest.raises(CorpusError, match=f"nothing would be found in the field '{field}'.*{why}"):
        reach(corpora={"own": own}).open("own")


def test_a_paragraph_with_a_very_long_title_is_indexed_and_found_by_its_words(reach: Reach) -> None:
    long = Paragraph(id="long", title="quill " * 7_000, text="A title of 42,000 characters.")
    store = reach()
    store.build("mine", [INK, long])
    corpus = store.open("mine")
    assert found(corpus, "characters", 1) == ["long"]
    assert corpus.titled("Ink") == (INK,)
