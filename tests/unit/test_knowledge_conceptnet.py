import gzip
from pathlib import Path

import pytest

from cotrail.core.ports.retriever import MOST_SENTENCES, Knowledge
from cotrail.engines.knowledge.conceptnet import TEMPLATES
from cotrail.engines.knowledge.store import KnowledgeStore
from cotrail.errors import InputError
from tests.cases import each_case
from tests.unit.made_knowledge import assertion

LINES = [
    assertion("RelatedTo", "married", "spouse", 2.5),
    assertion("RelatedTo", "married/a/wn", "spouse/n", 1.5),
    assertion("DistinctFrom", "rap", "rock"),
    assertion("IsA", "hard_rock", "genre"),
    assertion("FormOf", "musicians/n", "musician"),
    assertion("IsA", "musician/n/wn/person", "entertainer", 3.0),
    assertion("UsedFor", "guitar", "making_a_song"),
    assertion("ExternalURL", "rap", "rock"),
    assertion("Synonym", "rap", "rock", language="fr"),
    assertion("dbpedia/genre", "hydrograd", "rock", 0.5),
]


def built(folder: Path, lines: list[str]) -> KnowledgeStore:
    folder.mkdir(exist_ok=True)
    path = folder / "conceptnet-assertions-5.7.0.csv.gz"
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    store = KnowledgeStore(folder / "store")
    store.build("conceptnet", [path])
    return store


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Knowledge:
    return built(tmp_path_factory.mktemp("conceptnet"), LINES).open("conceptnet")


@each_case(
    ("text", "other", "expected"),
    [
        ("The Spouse of Charles are Diana", "Charles was married.", [("Married is related to spouse.", 2.5)]),
        ("married", "his spouse", [("Married is related to spouse.", 2.5)]),
        ("Hard rock", "a rap genre", [("Rap is distinct from rock.", 1.0), ("Hard rock is a kind of genre.", 1.0)]),
        ("Musicians", "an entertainer", [("Musician is a kind of entertainer.", 3.0)]),
        ("a guitar", "making a song", [("Guitar is used for making a song.", 1.0)]),
        ("Hydrograd", "rock", [("The genre of hydrograd is rock.", 0.5)]),
        ("musicians", "a musician", []),
        ("", "rock", []),
        ("married spouse", "nothing else", []),
    ],
)
def test_words_of_two_texts_are_related_in_either_direction(
    source: Knowledge, text: str, other: str, expected: list[tuple[str, float]]
) -> None:
    assert [(hit.paragraph.text, hit.score) for hit in source.lookup(text, other)] == expected


def test_a_hit_is_named_by_its_assertion(source: Knowledge) -> None:
    (hit,) = source.lookup("Hard rock", "genre")
    assert (hit.paragraph.id, hit.paragraph.title, hit.rank) == ("conceptnet:IsA/hard_rock/genre", "", 1)


def test_the_weightiest_are_kept_where_there_are_too_many(tmp_path: Path) -> None:
    names = [f"{chr(97 + number // 26)}{chr(97 + number % 26)}x" for number in range(MOST_SENTENCES + 20)]
    lines = [assertion("RelatedTo", "rock", name, number) for number, name in enumerate(names)]
    hits = built(tmp_path, lines).open("conceptnet").lookup("rock", " ".join(names))
    assert [hit.score for hit in hits] == list(range(MOST_SENTENCES + 19, 19, -1))


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    about = built(tmp_path, LINES).about("conceptnet")
    assert about is not None
    assert about.counts == {"assertions": 8, "skipped_in_other_languages": 1, "skipped_of_other_relations": 1}


def test_every_relation_has_a_template_of_two_words() -> None:
    assert all(template.count("{}") == 2 and template.endswith(".") for template in TEMPLATES.values())


@pytest.mark.parametrize(
    "line",
    [
        "not an assertion",
        '{"a": "json"}',
        assertion("IsA", "a", "b").replace('"weight": 1.0', '"weight": "heavy"'),
        assertion("IsA", "a", "b").rsplit("\t", 1)[0] + "\t{",
        assertion("IsA", "a", "b").replace("/r/IsA\t", "IsA\t"),
    ],
)
def test_a_broken_line_is_refused_by_its_place(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError, match=r"conceptnet-assertions-5\.7\.0\.csv\.gz, line 3"):
        built(tmp_path, [*LINES[:2], line])


def test_a_file_that_breaks_off_or_is_another_is_refused(tmp_path: Path) -> None:
    store = built(tmp_path, LINES)
    revision = store.revision("conceptnet")
    whole = tmp_path / "conceptnet-assertions-5.7.0.csv.gz"
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(whole.read_bytes()[:-20])
    with pytest.raises(InputError, match="breaks off"):
        store.build("conceptnet", [cut])
    (tmp_path / "french.csv").write_text(LINES[8] + "\n")
    with pytest.raises(InputError, match="no English assertions"):
        store.build("conceptnet", [tmp_path / "french.csv"])
    with pytest.raises(InputError, match="can't be read"):
        store.build("conceptnet", [tmp_path / "nowhere.csv"])
    assert store.revision("conceptnet") == revision
