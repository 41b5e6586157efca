from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.ports.retriever import MOST_SENTENCES, Sentence, ranked
from cotrail.engines.knowledge.database import ReadingProgress, lines
from cotrail.engines.knowledge.store import KnowledgeStore, find_source
from cotrail.engines.knowledge.words import STOP_WORDS, content, differ, terms, words
from cotrail.errors import InputError, UnknownNameError
from tests.cases import each_case
from tests.unit.made_knowledge import animals


@each_case(
    ("text", "expected"),
    [
        ("Harry S. Truman's car, 1948.", ("Harry", "S", "Truman", "car", "1948")),
        ("the U.S.\u2019s don\u2019t-care AT&T", ("the", "U.S", "don't-care", "AT&T")),
        ("?! \u2014", ()),
    ],
)
def test_words_have_no_marks_and_no_possessive_endings(text: str, expected: tuple[str, ...]) -> None:
    assert words(text) == expected


def test_terms_are_runs_of_up_to_three_words_that_begin_and_end_with_something() -> None:
    assert set(terms("The Hard rock of 1990")) == {"hard rock", "hard", "rock"}
    assert "part of speech" in terms("a part of speech")
    assert terms("of the 1990") == ()


@given(st.text())
def test_no_text_breaks_the_words(text: str) -> None:
    for term in terms(text):
        assert 1 <= len(term.split(" ")) <= 3
        assert term.split(" ")[0] not in STOP_WORDS
    assert not content(text) & STOP_WORDS


def test_one_word_in_both_texts_is_no_pair_but_two_that_both_have_are() -> None:
    married = {"married": frozenset({"married", "marry"})}
    assert not differ(married, married)("married", "marry")
    dogs = {"dog": frozenset({"dog"}), "collie": frozenset({"collie"})}
    assert differ(dogs, dogs)("collie", "dog")


def test_the_best_sentences_come_first_each_text_once_and_no_more_than_are_compared() -> None:
    sentences = [Sentence(id=f"{number:04}", text=f"{number % 300}.", score=number % 2) for number in range(900)]
    hits = ranked(reversed(sentences))
    assert hits == ranked(sentences)
    assert [hit.paragraph.id for hit in hits] == [f"{number:04}" for number in range(1, 2 * MOST_SENTENCES, 2)]
    assert [hit.rank for hit in hits] == list(range(1, MOST_SENTENCES + 1))
    assert ranked([]) == ()


def test_a_source_that_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    store = KnowledgeStore(tmp_path / "nowhere")
    assert store.names() == ("table",)
    assert store.revision("table") == store.open("table").revision == "table-1"
    for source in ("wikidata", "wordnet", "conceptnet"):
        with pytest.raises(UnknownNameError, match=f"cotrail knowledge build {source} FILE"):
            store.open(find_source(source))
    with pytest.raises(UnknownNameError, match="wikidata, wordnet, conceptnet, table"):
        find_source("dbpedia")


def test_what_a_source_cannot_be_built_from_is_refused(tmp_path: Path) -> None:
    store = KnowledgeStore(tmp_path / "store")
    with pytest.raises(InputError, match="no building"):
        store.build("table", [])
    with pytest.raises(InputError, match="dump"):
        store.build("wikidata", [])
    with pytest.raises(InputError, match=r"data\.noun can't be read"):
        store.build("wordnet", [tmp_path])
    assert store.names() == ("table",)


def test_a_source_that_was_opened_stays_as_it_is_when_it_is_built_anew(tmp_path: Path) -> None:
    store = KnowledgeStore(tmp_path / "store")
    files = animals(tmp_path / "files")
    first = store.build("wordnet", [files])
    opened = store.open("wordnet")
    former, revision = opened.lookup("collie", "dog"), opened.revision
    assert store.build("wordnet", [files]) == first
    assert store.revision("wordnet") == revision
    (files / "data.noun").write_text("")
    (files / "data.adj").write_text("")
    store.build("wordnet", [files])
    assert store.revision("wordnet") != revision
    assert store.open("wordnet").lookup("collie", "dog") == ()
    assert (opened.lookup("collie", "dog"), opened.revision) == (former, revision)
    assert len(former) == 1


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    store = KnowledgeStore(tmp_path)
    (tmp_path / "conceptnet").mkdir()
    (tmp_path / "conceptnet" / "knowledge.sqlite").write_bytes(b"no database at all" * 1000)
    with pytest.raises(InputError, match="cotrail knowledge build conceptnet"):
        store.open("conceptnet")


def test_progress_ends_with_all_bytes_of_all_files(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    paths[0].write_text("x\n" * 25_000)
    paths[1].write_text("y\n\nz")
    told: list[ReadingProgress] = []
    assert sum(1 for _ in lines(paths, told.append)) == 25_002
    assert [progress.done for progress in told] == sorted(progress.done for progress in told)
    assert told[-1] == ReadingProgress(done=50_004, total=50_004)
    assert len(told) == 3
