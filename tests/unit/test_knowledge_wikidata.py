import bz2
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.ports.retriever import MOST_SENTENCES, Knowledge
from cotrail.engines.knowledge.database import ReadingProgress
from cotrail.engines.knowledge.store import KnowledgeStore
from cotrail.engines.knowledge.wikidata.entities import Time, in_words
from cotrail.errors import InputError
from tests.cases import each_case
from tests.unit.made_knowledge import Json, claim, dump, item, item_value, minnesota, plain_value, property_, time

Build = Callable[..., Knowledge]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Knowledge:
    folder = tmp_path_factory.mktemp("wikidata")
    (folder / "dump.json").write_text(dump(minnesota()))
    store = KnowledgeStore(folder / "store")
    store.build("wikidata", [folder / "dump.json"])
    return store.open("wikidata")


@pytest.fixture
def build(tmp_path: Path) -> Build:
    def build(entities: Sequence[Json]) -> Knowledge:
        path = tmp_path / "dump.json"
        path.write_text(dump(entities))
        store = KnowledgeStore(tmp_path / "store")
        store.build("wikidata", [path])
        return store.open("wikidata")

    return build


def said(source: Knowledge, text: str) -> set[str]:
    return {hit.paragraph.text for hit in source.lookup(text, "")}


# Times.


@each_case(
    ("written", "precision", "expected"),
    [
        ("+2003-01-06T00:00:00Z", 11, "2003"),
        ("+2003-00-00T00:00:00Z", 9, "2003"),
        ("-0322-03-07T00:00:00Z", 11, "322 BC"),
        ("-10000-00-00T00:00:00Z", 9, "10000 BC"),
        ("+0079-08-24T00:00:00Z", 11, "79"),
        ("+1980-00-00T00:00:00Z", 8, "the 1980s"),
        ("+1983-00-00T00:00:00Z", 8, "the 1980s"),
        ("-0350-00-00T00:00:00Z", 7, "the 4th century BC"),
        ("+1900-00-00T00:00:00Z", 7, "the 19th century"),
        ("+1901-00-00T00:00:00Z", 7, "the 20th century"),
        ("+1200-00-00T00:00:00Z", 7, "the 12th century"),
        ("+2100-00-00T00:00:00Z", 7, "the 21st century"),
        ("-2000-00-00T00:00:00Z", 6, "the 2nd millennium BC"),
        ("-13798000000-00-00T00:00:00Z", 3, None),
    ],
)
def test_times_are_told_as_years_or_coarser(written: str, precision: int, expected: str | None) -> None:
    assert in_words(Time(written, precision)) == expected


@given(year=st.integers(-12_000, 12_000).filter(bool), precision=st.integers(6, 14))
def test_every_time_can_be_told(year: int, precision: int) -> None:
    value = time(year, precision)["datavalue"]["value"]
    told = in_words(Time(value["time"], precision))
    assert told is not None
    assert told.endswith(" BC") == (year < 0)
    assert precision < 9 or told.split(" ")[0] == str(abs(year))


# Linking and templates.


def test_the_papers_governor_is_found_with_his_years(source: Knowledge) -> None:
    sentence = "Tim Pawlenty served as the 39th governor of Minnesota from 2003 to 2011."
    best = source.lookup(sentence, "")[0]
    assert best.paragraph.text == "Tim Pawlenty held the position of Governor of Minnesota from 2003 to 2011."
    assert (best.paragraph.id, best.paragraph.title, best.rank) == ("wikidata:Q1#P39/0", "", 1)


def test_the_papers_philosopher_is_found_with_his_years(source: Knowledge) -> None:
    hits = source.lookup("Aristotle died in 322BC.", "")
    assert [(hit.paragraph.text, hit.paragraph.id) for hit in hits] == [
        ("Aristotle died in 322 BC.", "wikidata:Q868#P570/1"),
        ("Aristotle was born in 384 BC.", "wikidata:Q868#P569/0"),
    ]
    assert [hit.paragraph for hit in source.lookup("Aristoteles died.", "")] == [hit.paragraph for hit in hits]


def test_each_form_of_statement_has_its_template(source: Knowledge) -> None:
    assert said(source, "He was governor of Minnesota.") == {
        "The head of government of Minnesota was Tim Pawlenty from 2003 to 2011.",
        "The head of government of Minnesota was Tim Walz since 2019.",
        "The population of Minnesota was 5303925 in 2010.",
        "The official name of Minnesota was Territory until 1858.",
        "Minnesota was part of United States since 1858.",
    }
    assert said(source, "It was in the Costa Rican civil war.") == {
        "Costa Rican Civil War began in 1948.",
        "Costa Rican Civil War ended in 1948.",
    }
    assert said(source, "A laptop.") == {"The time of launch of laptop was in the 1980s."}


def test_two_statements_of_one_year_are_one_sentence(source: Knowledge) -> None:
    (hit,) = source.lookup("Shanghai Noon was released on May 26, 2000.", "")
    assert (hit.paragraph.text, hit.paragraph.id) == ("Shanghai Noon was released in 2000.", "wikidata:Q9#P577/0")


@each_case(
    ("text", "expected"),
    [
        ("Laptops were made.", set()),
        ("The laptop was invented.", {"The time of launch of laptop was in the 1980s."}),
        ("Laptop computers.", {"The time of launch of laptop was in the 1980s."}),
        ("My Laptop is here.", {"Laptop was released in 1999."}),
        ("who governed during the costa rican civil war", {"Costa Rican Civil War began in 1948."}),
        ("who was born before aristotle?", {"Aristotle died in 322 BC."}),
        ("Who was born before aristotle in Rome?", set()),
        ("Aristotle\u2019s years", {"Aristotle died in 322 BC."}),
        ("In 1948, from 2003 to 2011.", set()),
        ("", set()),
    ],
)
def test_names_count_as_they_are_written(source: Knowledge, text: str, expected: set[str]) -> None:
    found = said(source, text)
    assert expected <= found
    assert bool(expected) == bool(found)


def test_of_equal_names_the_best_known_counts_and_no_disambiguation(source: Knowledge) -> None:
    found = said(source, "It was in Minnesota.")
    assert any("Tim Walz" in sentence for sentence in found)
    assert not any("released" in sentence for sentence in found)


def test_the_longest_name_counts(build: Build) -> None:
    dated = {"P577": [claim(time(1965))]}
    entities = [
        item("Q1", "The Collector", dated, links=20),
        item("Q2", "Collector", {"P577": [claim(time(1901))]}, links=500),
        property_("P577", "publication date"),
    ]
    assert said(build(entities), "The Collector premiered at Cannes.") == {"The Collector was released in 1965."}


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("member of", "Ann was member of Plum in 1990."),
        ("located in the area", "Ann was located in the area Plum in 1990."),
        ("owned by", "Ann was owned by Plum in 1990."),
        ("capital", "The capital of Ann was Plum in 1990."),
        ("head of state", "The head of state of Ann was Plum in 1990."),
        ("date of the {}", "The date of the {} of Ann was Plum in 1990."),
    ],
)
def test_a_propertys_label_decides_how_it_is_said(build: Build, label: str, expected: str) -> None:
    entities = [
        item("Q1", "Ann", {"P9": [claim(item_value("Q2"), P585=time(1990))]}),
        item("Q2", "Plum"),
        property_("P9", label),
    ]
    assert said(build(entities), "About Ann.") == {expected}


def test_start_and_end_in_one_year_are_that_year(build: Build) -> None:
    lived = claim(item_value("Q2"), P580=time(1990), P582=time(1990))
    entities = [item("Q1", "Ann", {"P551": [lived]}), item("Q2", "Plum"), property_("P551", "residence")]
    assert said(build(entities), "About Ann.") == {"Ann lived in Plum in 1990."}


@pytest.mark.parametrize(
    "value",
    [
        {"snaktype": "novalue", "datatype": "time"},
        {"snaktype": "somevalue", "datatype": "time"},
        time(-13_798, 3),
        plain_value("string", "http://x", "url"),
        plain_value("globecoordinate", {"latitude": 1.0}, "globe-coordinate"),
        plain_value("wikibase-entityid", {"entity-type": "lexeme", "id": "L1"}, "wikibase-lexeme"),
        item_value("Q404"),
    ],
)
def test_values_that_no_sentence_can_hold_are_left_out(build: Build, value: Json) -> None:
    unlabelled = [claim(value, P585=time(1990)), claim(time(1985))]
    entities = [item("Q1", "Ann", {"P571": unlabelled}), property_("P571", "inception")]
    assert said(build(entities), "About Ann.") == {"Ann was founded in 1985."}


def test_a_quantitys_unit_is_said_and_unknown_qualifiers_are_not(build: Build) -> None:
    metre = plain_value("quantity", {"amount": "+12.5", "unit": "http://www.wikidata.org/entity/Q11573"}, "quantity")
    undated = {"snaktype": "somevalue", "datatype": "time"}
    entities = [
        item("Q1", "Ann", {"P2048": [claim(metre, P585=time(1990), P580=undated), claim(metre, P580=undated)]}),
        item("Q11573", "metre"),
        property_("P2048", "height"),
    ]
    assert said(build(entities), "About Ann.") == {"The height of Ann was 12.5 metre in 1990."}


def test_what_shares_most_words_comes_first_and_the_rest_is_cut(build: Build) -> None:
    claims = [
        claim(item_value(f"Q{number}"), P585=time(number)) for number in range(1_000, 1_000 + MOST_SENTENCES + 50)
    ]
    entities = [
        item("Q1", "Ann", {"P166": claims}),
        *(item(f"Q{number}", f"Prize {number}") for number in range(1_000, 1_000 + MOST_SENTENCES + 50)),
        property_("P166", "award received"),
    ]
    source = build(entities)
    hits = source.lookup("Ann got the award, some Prize, in 1120.", "")
    assert len(hits) == MOST_SENTENCES
    assert hits[0].paragraph.text == "Ann received Prize 1120 in 1120."
    assert [(-hit.score, hit.paragraph.id) for hit in hits] == sorted((-hit.score, hit.paragraph.id) for hit in hits)


@given(text=st.text())
def test_no_text_raises(source: Knowledge, text: str) -> None:
    source.lookup(text, text)
    source.lookup(f"{text} Aristotle \ud800\0", "")


# Files.


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("wikidata-20260101-all.json.gz", lambda text: gzip.compress(text.encode())),
        ("wikidata-20260101-all.json.bz2", lambda text: bz2.compress(text.encode())),
        ("windows.json", lambda text: text.replace("\n", "\r\n").encode()),
        ("lines.jsonl", lambda text: text.strip("[]\n").replace(",\n", "\n").encode()),
        ("extract.json", lambda text: extract(text).encode()),
        ("pretty.json", lambda text: json.dumps(json.loads(extract(text)), indent=1).encode()),
    ],
)
def test_dumps_and_extracts_make_the_same_database(
    tmp_path: Path, source: Knowledge, name: str, packed: Callable[[str], bytes]
) -> None:
    (tmp_path / name).write_bytes(packed(dump(minnesota())))
    store = KnowledgeStore(tmp_path / "store")
    told: list[ReadingProgress] = []
    about = store.build("wikidata", [tmp_path / name], told.append)
    assert store.revision("wikidata") == source.revision
    assert about.counts == {"items": 14, "properties": 14, "statements": 17}
    assert told[-1].done == told[-1].total > 0


def extract(text: str) -> str:
    entities = [entity for entity in json.loads(text) if "redirect" not in entity]
    return json.dumps({"entities": {entity["id"]: entity for entity in entities}})


def test_of_several_entities_of_one_id_the_first_counts(tmp_path: Path) -> None:
    paths = [tmp_path / "newer.json", tmp_path / "older.json"]
    paths[0].write_text(dump([item("Q868", "Aristotle", {"P570": [claim(time(-322))]})]))
    paths[1].write_text(
        dump([item("Q868", "Plato", {"P570": [claim(time(-348))]}), property_("P570", "date of death")])
    )
    store = KnowledgeStore(tmp_path / "store")
    store.build("wikidata", paths)
    assert said(store.open("wikidata"), "Aristotle died.") == {"Aristotle died in 322 BC."}
    assert said(store.open("wikidata"), "Plato died.") == set()


@each_case(
    ("content", "message"),
    [
        ('[\n{"type": "item", "id": "Q1"},\n{"type": "item", "id"\n]\n', r"dump\.json, line 3: this isn't valid JSON"),
        ("[\n<html>\n]\n", r"dump\.json, line 2: this isn't valid JSON"),
        ('[\n{"type": "item", "id": 1}\n]\n', r"dump\.json, line 2: `id` must be text in quotation marks"),
        ('[\n{"type": "item", "id": "QX"}\n]\n', r"dump\.json, line 2: QX isn't of Wikidata's form"),
        ('[\n{"type": "item", "id": "Q1"},\n', "breaks off"),
        ('{\n"entities": {\n', r"dump\.json: this isn't valid JSON"),
        ("", "no items"),
        ("[\n]\n", "no items"),
        ('{"id": "a", "title": "T", "text": "A paragraph."}\n', "no items"),
    ],
)
def test_what_is_no_dump_is_refused_by_its_place(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "dump.json").write_text(content)
    store = KnowledgeStore(tmp_path / "store")
    with pytest.raises(InputError, match=message):
        store.build("wikidata", [tmp_path / "dump.json"])
    assert store.names() == ("table",)


@pytest.mark.parametrize(
    "value", [{"time": "1990", "precision": "day"}, {"time": "+x-01-01T00:00:00Z", "precision": 9}, "1990"]
)
def test_a_value_of_another_form_is_refused(build: Build, value: Any) -> None:
    with pytest.raises(InputError, match="line 2: Q1 isn't of Wikidata's form"):
        build([item("Q1", "Ann", {"P569": [claim(plain_value("time", value, "time"))]})])


def test_a_packed_dump_that_breaks_off_is_refused(tmp_path: Path) -> None:
    for suffix, pack in ((".gz", gzip.compress), (".bz2", bz2.compress)):
        path = tmp_path / f"dump.json{suffix}"
        path.write_bytes(pack(dump(minnesota()).encode())[:-30])
        with pytest.raises(InputError, match="breaks off"):
            KnowledgeStore(tmp_path / "store").build("wikidata", [path])
