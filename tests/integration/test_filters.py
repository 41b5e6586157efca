"""Filters by metadata let through what a comparison of every record lets through, in each way to search."""

import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import cotrail
from cotrail.configuration.settings import settings
from cotrail.core.binding import filter_of
from cotrail.core.ports.retriever import Corpus
from cotrail.core.questions import FiledParagraph, Paragraph, Question
from cotrail.core.system import Answer, System
from cotrail.data.corpora.files import read_corpus
from cotrail.engines.retrieval.engine import NewIndex
from cotrail.engines.retrieval.stores import FolderStore
from cotrail.errors import CorpusError, InputError, StepError
from cotrail.services.library.corpora import index, index_again
from cotrail.systems.registry import SYSTEMS
from tests.integration.test_dense import Embedder, embedder
from tests.searching import search

pytest.importorskip("faiss", reason="faiss isn't installed")

__all__ = ["embedder"]

FIELDS = {"lang": "word", "date": "word", "year": "number", "tags": "word", "pages": "number"}


def given(count: int = 300) -> list[FiledParagraph]:
    chance = random.Random(3)
    made = []
    for number in range(count):
        year = chance.randrange(1990, 2020)
        fields: dict[str, Any] = {"lang": chance.choice(["en", "de", "pt br"]), "date": f"{year}-05-01", "year": year}
        if number % 10 == 0:
            del fields["year"]
        fields = {name: (value,) for name, value in fields.items()} | {"pages": tuple(chance.sample(range(9), 2))}
        if tags := chance.sample("abc", chance.randrange(4)):
            fields["tags"] = tuple(tags)
        made.append(FiledParagraph(id=f"{number:03}", title=f"T{number % 7}", text=f"river {number}", fields=fields))
    return made


def of(paragraph: FiledParagraph) -> dict[str, Any]:
    """Its metadata; of fields with several values all of them."""
    fields = {name: values[0] for name, values in paragraph.fields.items()}
    return fields | {name: paragraph.fields.get(name, ()) for name in ("tags", "pages")}


CASES: dict[str, Any] = {
    "lang:en": lambda f: f["lang"] == "en",
    'lang:"pt br"': lambda f: f["lang"] == "pt br",
    "lang:(en OR de)": lambda f: f["lang"] in ("en", "de"),
    "year:[2000 TO 2010]": lambda f: 2000 <= f.get("year", 0) <= 2010,
    "year:>=2015": lambda f: f.get("year", 0) >= 2015,
    "date:<2000-01-01": lambda f: f["date"] < "2000-01-01",
    "date:[1995-01-01 TO 1999-12-31] AND lang:en": lambda f: "1995" <= f["date"][:4] <= "1999" and f["lang"] == "en",
    "lang:en -year:2001": lambda f: f["lang"] == "en" and f.get("year") != 2001,
    "* -lang:en": lambda f: f["lang"] != "en",
    "year:1066": lambda f: False,
    "tags:a": lambda f: "a" in f["tags"],
    "* -tags:(a OR b)": lambda f: not {"a", "b"} & {*f["tags"]},
    "tags:>=c": lambda f: "c" in f["tags"],
    "pages:[2 TO 3] AND tags:b": lambda f: bool({2, 3} & {*f["pages"]}) and "b" in f["tags"],
}


@pytest.mark.parametrize("way", ["bm25", "dense", "hybrid"])
def test_a_search_finds_what_the_filter_lets_through_with_the_scores_it_had(
    way: str, embedder: Embedder, tmp_path: Path
) -> None:
    settings = {"model": "made-up", "fields": FIELDS, "retriever": way}
    corpus = filled(tmp_path, settings)
    everything = {hit.paragraph.id: hit.score for hit in search(corpus, "river 7", 300)}
    for filter_, right in CASES.items():
        wanted = {each.id for each in given() if right(of(each))}
        hits = search(corpus, "river 7", 300, filter=filter_)
        assert {hit.paragraph.id for hit in hits} == wanted, filter_
        if way != "hybrid":
            assert all(hit.score == pytest.approx(everything[hit.paragraph.id], abs=1e-6) for hit in hits)
        titled = search(corpus, "river 7", 300, ("T2",), filter=filter_)
        assert {hit.paragraph.id for hit in titled} == {each.id for each in given() if each.title == "T2"} & wanted
        assert [hit.paragraph for hit in search(corpus, "river 7", 5, filter=filter_)] == [
            h.paragraph for h in hits[:5]
        ]


def filled(folder: Path, settings: dict[str, Any]) -> Corpus:
    store = FolderStore(folder)
    store.build("mine", given(), NewIndex(settings=settings))
    return store.open("mine")


def test_by_words_alone_too(tmp_path: Path) -> None:
    corpus = filled(tmp_path, {"fields": FIELDS})
    assert {hit.paragraph.id for hit in search(corpus, "river", 300, filter="lang:en")} == {
        each.id for each in given() if of(each)["lang"] == "en"
    }
    assert type(search(corpus, "river", 1)[0].paragraph) is Paragraph


@pytest.mark.parametrize(
    ("filter_", "said"),
    [
        ("author:Ada", "has no field 'author' to filter by; there are: lang, date, year"),
        ("lang:en AND NOT year:2001", "has no NOT; write `-field:value`"),
        ("!lang:en", "has no NOT"),
        ("lang:", "can't be read"),
        ("(((", "can't be read"),
        ("year:abc", "the field 'year' has numbers, and 'abc' is none"),
        ("year:[abc TO 3]", "has numbers"),
        ("lang:en && year:2001", "write AND and OR"),
        ("lang:e*", "within words"),
        ("lang:e?", "within words"),
        ("lang:en~", "within words"),
        ("date:<{asked}", "write the value itself"),
        ("en", "can't be read"),
        ("lang:en " * 2_000, "10,000 characters at most"),
    ],
)
def test_a_filter_that_cannot_be_is_refused_also_where_nothing_is_asked(
    filter_: str, said: str, tmp_path: Path
) -> None:
    corpus = filled(tmp_path, {"fields": FIELDS})
    for query in ("river", ""):
        with pytest.raises(StepError, match=said):
            search(corpus, query, 5, filter=filter_)


def test_an_index_without_fields_and_names_that_none_can_have_are_refused(tmp_path: Path) -> None:
    corpus = filled(tmp_path, {})
    with pytest.raises(StepError, match="index it with `--field NAME`"):
        search(corpus, "river", 5, filter="*")
    for name in ("id", "text", "Year", "a b", "9", ""):
        with pytest.raises(InputError, match="field"):
            filled(tmp_path / "other", {"fields": {name: "word"}})
    with pytest.raises(InputError, match="field"):
        filled(tmp_path / "other", {"fields": {"year": "date"}})


def test_fields_come_from_the_records_and_belong_to_the_revision(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"id": "a", "title": "A", "text": "One.", "year": 1999, "lang": "en", "more": 1},
        {"id": "b", "title": "B", "text": "Two.", "year": None, "lang": ["en", "", 5, True]},
        {"id": "c", "title": "C", "text": "Three."},
    ]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    read = list(read_corpus([tmp_path / "c.jsonl"], {"year": "number", "lang": "word"}))
    fields = [getattr(each, "fields", None) for each in read]
    assert fields == [{"year": (1999,), "lang": ("en",)}, {"lang": ("en", "5", "true")}, None]
    assert all(type(each) is Paragraph for each in read_corpus([tmp_path / "c.jsonl"]))
    store = FolderStore(tmp_path / "corpora")
    revisions = {
        store.build("mine", read_corpus([tmp_path / "c.jsonl"], fields), NewIndex(settings={"fields": fields})).revision
        for fields in ({}, {"year": "number"}, {"lang": "word"})
    }
    assert len(revisions) == 3


@pytest.mark.parametrize("name", ["c.csv", "c.jsonl"])
def test_numbers_may_be_written_as_texts(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    lines = {"c.csv": "text,year\nOne.,2001\nTwo.,\nThree.,2005.5\n"}
    records = [{"text": "One.", "year": "2001"}, {"text": "Two."}, {"text": "Three.", "year": 2005.5}]
    (tmp_path / name).write_text(lines.get(name) or "".join(json.dumps(each) + "\n" for each in records))
    index([tmp_path / name], "mine", NewIndex(settings={"fields": {"year": "number"}}))
    corpus = FolderStore(tmp_path / "corpora").open("mine")
    cases = {"year:2001": {"One."}, "year:>2000": {"One.", "Three."}, "* -year:2001": {"Two.", "Three."}}
    for filter_, texts in cases.items():
        assert {hit.paragraph.text for hit in search(corpus, "one two three", 5, filter=filter_)} == texts


@pytest.mark.parametrize("value", ["early", "nan", "inf", True, {"from": 1}, [1, "early"], [[1]], "1" * 400])
def test_a_value_that_is_none_of_its_kind_is_refused_with_its_record(value: Any, tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text(json.dumps({"id": "a", "text": "One.", "year": value}) + "\n")
    with pytest.raises(CorpusError, match=r"c.jsonl, line 1: the field 'year' has .*, which is no number"):
        list(read_corpus([tmp_path / "c.jsonl"], {"year": "number"}))


def test_paragraphs_that_differ_in_their_fields_are_kept_and_others_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    records = [{"id": f"{n}", "text": "Copper.", "lang": lang} for n, lang in enumerate(("en", "de", "en", "en"))]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(each) + "\n" for each in [*records, records[0]]))
    built = index([tmp_path / "c.jsonl"], "mine", NewIndex(settings={"fields": {"lang": "word"}}))
    assert (built.paragraphs, built.repeated) == (2, 2)
    corpus = FolderStore(tmp_path / "corpora").open("mine")
    assert [hit.paragraph.id for hit in search(corpus, "copper", 5, filter="lang:de")] == ["1"]
    built = index([tmp_path / "c.jsonl"], "mine")
    assert (built.paragraphs, built.repeated) == (1, 3)


def test_a_corpus_that_is_indexed_again_has_its_fields_in_other_kinds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    cotrail.index([{"text": f"Report {n}.", "year": n} for n in range(5)], "mine", fields={"year": "word"})
    index_again("mine", "numbers", NewIndex(settings={"fields": {"year": "number"}}))
    corpus = FolderStore(tmp_path / "corpora").open("numbers")
    assert len(search(corpus, "report", 9, filter="year:[2 TO 3]")) == 2
    with pytest.raises(InputError, match="has no field 'lang': index its files again"):
        index_again("mine", "more", NewIndex(settings={"fields": {"lang": "word"}}))
    with pytest.raises(InputError, match="`fields` must be an object"):
        index_again("mine", "more", NewIndex(settings={"fields": ["year"]}))


def test_a_field_that_no_record_has_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    (tmp_path / "c.jsonl").write_text('{"text": "One.", "metadata": {"year": 1999}, "lang": "en"}\n')
    for fields, missing in (({"lang": "word"}, None), ({"lang": "word", "year": "number"}, "year")):
        new = NewIndex(settings={"fields": fields})
        if missing is None:
            assert index([tmp_path / "c.jsonl"], "mine", new).paragraphs == 1
        else:
            with pytest.raises(InputError, match=f"no record has the field '{missing}'"):
                index([tmp_path / "c.jsonl"], "mine", new)
    assert FolderStore(tmp_path / "corpora").manifests()["mine"].settings == {"fields": {"lang": "word"}}


def test_a_filter_may_be_each_question_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    news = [{"text": f"Ada was the mayor in {year}.", "date": f"{year}-06-01"} for year in range(2000, 2010)]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(each) + "\n" for each in news))
    index([tmp_path / "c.jsonl"], "news", NewIndex(settings={"fields": {"date": "word"}}))
    dates = [f"{year}-01-01" for year in range(2001, 2005)]
    asked: list[Any] = [
        {"id": date, "question": "Who was the mayor?", "answers": ["Ada"], "kinds": {"asked": date}} for date in dates
    ]
    lacking = [*asked, {"id": "never", "question": "Who?"}]
    for name, lines in (("q", asked), ("lacking", lacking)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))

    def searching(question: Question) -> System:
        found = yield from cotrail.search(question.text, count=20)
        return Answer(text=f"{len(found)} {question.answers} {question.gold} {dict(question.kinds)}")

    systems = [*SYSTEMS]  # of which other tests learn nothing
    for module in ("cotrail.inprocess", "cotrail.systems.registry"):
        monkeypatch.setattr(f"{module}.SYSTEMS", systems)
    run = partial(cotrail.run, searching, corpus="news")
    ended = run(str(tmp_path / "q.jsonl"), filter="date:<{asked}")
    # A system doesn't see what its question is judged by, and kinds may say that.
    assert [each.answer for each in ended] == [f"{count} () () {{}}" for count in (1, 2, 3, 4)]
    with pytest.raises(InputError, match="question never has none"):
        run(str(tmp_path / "lacking.jsonl"), filter="date:<{asked}")
    with pytest.raises(InputError, match=r"question 2001-01-01: .*no field 'year'"):
        run(str(tmp_path / "q.jsonl"), filter="year:<{asked}")


def test_records_keep_their_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    given = [{"text": f"Report of {year}.", "date": f"{year}-06-01"} for year in range(2000, 2010)]
    assert cotrail.index(given, "news", fields={"date": "word"}).paragraphs == 10
    corpus = FolderStore(tmp_path / "corpora").open("news")
    assert [hit.paragraph.id for hit in search(corpus, "report", 5, filter="date:<2001-01-01")] == ["1"]


@pytest.mark.parametrize("value", ["", "a b", "2001 OR *", '"', "-1", "x" * 101, "OR", "NOT", "TO"])
def test_what_a_question_says_is_no_query(value: str) -> None:
    with pytest.raises(InputError, match="a word, a number or a date"):
        filter_of("date:<{asked}", {"asked": value}, "q")
    assert filter_of("year:{2000 TO 2010} AND lang:{lang}", {"lang": "en"}, "q") == "year:{2000 TO 2010} AND lang:en"
