"""WordNet: a made-up one, and the real one where it is installed."""

from pathlib import Path

import pytest

from cotrail.core.ports.retriever import Knowledge
from cotrail.engines.knowledge.store import KnowledgeStore
from cotrail.engines.knowledge.wordnet import shipped
from cotrail.errors import InputError
from tests.cases import each_case
from tests.unit.made_knowledge import animals


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Knowledge:
    folder = tmp_path_factory.mktemp("wordnet")
    store = KnowledgeStore(folder / "store")
    store.build("wordnet", [animals(folder / "files")])
    return store.open("wordnet")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Knowledge:
    try:
        shipped()
    except InputError as error:
        pytest.skip(str(error))
    store = KnowledgeStore(tmp_path_factory.mktemp("wordnet"))
    store.build("wordnet", [])
    return store.open("wordnet")


def said(source: Knowledge, text: str, other: str) -> dict[str, float]:
    return {hit.paragraph.text: hit.score for hit in source.lookup(text, other)}


@each_case(
    ("text", "other", "expected"),
    [
        ("The Breed is a collie.", "It is no dog.", {"Collie is a hyponym of dog.": 7 / 8}),
        ("dogs", "two Golden Retrievers", {"Dog is a hypernym of Golden Retriever.": 7 / 8}),
        ("a beast", "an animal", {"Beast is a synonym of animal.": 1.0}),
        ("a dog", "a cat", {"Dog is distinct from cat.": 6 / 8}),
        ("Lassie", "animals", {"Lassie is a hyponym of animal.": 5 / 8}),
        ("tails", "the animal", {"Tail is a part of animal.": 7 / 8}),
        ("the animal", "tails", {"Animal has tail as a part.": 7 / 8}),
        ("hot", "cold", {"Hot is an antonym of cold.": 1.0}),
        ("geese", "animal", {"Goose is a hyponym of animal.": 7 / 8}),
        ("he dogs her", "he chased", {"Dog is a synonym of chase.": 1.0}),
        ("heated", "cold", {}),
        ("dog", "dogs", {}),
        ("", "dog", {}),
        ("dog", "", {}),
        ("of the", "unheard words", {}),
    ],
)
def test_words_of_two_texts_are_related(made: Knowledge, text: str, other: str, expected: dict[str, float]) -> None:
    assert said(made, text, other) == expected


def test_hits_are_ranked_by_closeness_and_named_by_their_words(made: Knowledge) -> None:
    hits = made.lookup("collies and hot dogs", "cold Golden retriever, animals")
    assert [(hit.paragraph.id, hit.rank, hit.score) for hit in hits] == [
        ("wordnet:antonym/hot/cold", 1, 1.0),
        ("wordnet:hypernym/dog/golden_retriever", 2, 7 / 8),
        ("wordnet:hyponym/dog/animal", 3, 7 / 8),
        ("wordnet:distinct/collie/golden_retriever", 4, 6 / 8),
        ("wordnet:hyponym/collie/animal", 5, 6 / 8),
    ]
    assert {hit.paragraph.title for hit in hits} == {""}


def test_both_words_in_one_text_are_related_to_each_other_there(made: Knowledge) -> None:
    assert "Collie is a hyponym of dog." in said(made, "Collie, Dog", "the dog was a retriever")


@pytest.mark.parametrize(
    "line",
    [
        "00001740 03 n 01 entity 0 003 ~ 00001930",
        "00001740 03 x 01 entity 0 000 | gloss",
        "nonsense | nonsense",
        "00001740 03 n zz entity 0 000 |",
    ],
)
def test_a_broken_line_is_refused_by_its_place(tmp_path: Path, line: str) -> None:
    files = animals(tmp_path / "files")
    with (files / "data.noun").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError, match=r"data\.noun, line 10"):
        KnowledgeStore(tmp_path / "store").build("wordnet", [files])
    assert KnowledgeStore(tmp_path / "store").names() == ("table",)


def test_a_synset_that_is_missing_is_told(tmp_path: Path) -> None:
    files = animals(tmp_path / "files")
    lines = (files / "data.adj").read_text().splitlines(keepends=True)
    (files / "data.adj").write_text("".join(line for line in lines if " cold " not in line))
    with pytest.raises(InputError, match="antonym of hot is missing"):
        KnowledgeStore(tmp_path / "store").build("wordnet", [files])


# What the paper's table 8 takes from WordNet.


@each_case(
    ("premise", "hypothesis", "expected"),
    [
        ("The Elevation of Curitiba are 934.6 m.", "Curitiba is above sea level.", "Elevation is a hypernym of level."),
        ("The Occupation are Actor.", "He is an English entertainer.", "Actor is a hyponym of entertainer."),
        ("The Occupation are musicians.", "He is an entertainer.", "Musician is a hyponym of entertainer."),
        ("The Breed of the Dog are Scotch Collie.", "The dog was a Retriever.", "Collie is a hyponym of dog."),
        ("The Genre of Hydrograd are Hard rock.", "Hydrograd is in the rap genre.", "Rock is distinct from rap."),
        ("fingers", "hand", "Finger is a part of hand."),
    ],
)
def test_the_real_wordnet_knows_what_the_paper_says_of_it(
    real: Knowledge, premise: str, hypothesis: str, expected: str
) -> None:
    assert expected in said(real, premise, hypothesis)
