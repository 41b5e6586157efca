from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.table_sentences import Table, premise_sentences, table_sentences
from tests.cases import each_case

# Premises of table 8, as the paper prints them.
PREMISES = {
    "Charles Sumner Tainter": {
        "Born": ["April 25, 1854 (1854-04-25) Watertown, Massachusetts, U.S."],
        "Died": ["April 20, 1940 (1940-04-21) (aged 85) San Diego, California, U.S."],
        "Nationality": ["American"],
        "Known for": ["Photophone, phonograph Father Of The Speaking Machine"],
    },
    "Curitiba": {
        "Region": ["South"],
        "Elevation": ["934.6 m (3,066.3 ft)"],
        "Density": ["4,062/km² (10,523/sq mi)"],
        "Metro density": ["210.9/km² (546.2/sq mi)"],
    },
    "Idris Elba": {
        "Born": ["6 September 1972 (age 46) Hackney, London, England"],
        "Residence": ["London"],
        "Other names": ["DJ Big Driis", "Big Driis the Londoner", "Big Driis", "7 Dub"],
        "Occupation": ["Actor, producer, director, musician, and DJ"],
    },
    "Jean, the Vitagraph Dog": {
        "Breed": ["Scotch Collie"],
        "Sex": ["Female"],
        "Born": ["1902 Eastport, Maine"],
        "Years active": ["1909 - 1916"],
    },
}
PRINTED = """\
Charles Sumner Tainter was Born on April 25, 1854 (1854-04-25) Watertown, Massachusetts, U.S..
Charles Sumner Tainter was Died on April 20, 1940 (1940-04-21) (aged 85) San Diego, California, U.S..
The Nationality of Charles Sumner Tainter are American.
The Known for of Charles Sumner Tainter are Photophone, phonograph Father Of The Speaking Machine.
The Region of Curitiba are South.
The Elevation of Curitiba are 934.6 m (3,066.3 ft).
The Density of Curitiba are 4,062/km² (10,523/sq mi).
The Metro density of Curitiba are 210.9/km² (546.2/sq mi).
The Born of Idris Elba are 6 September 1972 (age 46) Hackney, London, England.
The Residence of Idris Elba are London.
The Other names of Idris Elba are DJ Big Driis, Big Driis the Londoner, Big Driis, and 7 Dub.
The Occupation of Idris Elba are Actor, producer, director, musician, and DJ.
The Breed of Jean, the Vitagraph Dog are Scotch Collie.
The Sex of Jean, the Vitagraph Dog are Female.
The Born of Jean, the Vitagraph Dog are 1902 Eastport, Maine.
The Years active of Jean, the Vitagraph Dog are 1909 - 1916.
""".splitlines()


def test_tables_become_the_sentences_of_table_8() -> None:
    assert [sentence for title, rows in PREMISES.items() for sentence in table_sentences(title, rows)] == PRINTED


@each_case("title", PREMISES)
def test_premises_of_table_8_are_cut_apart_whatever_full_stops_they_hold(title: str) -> None:
    sentences = table_sentences(title, PREMISES[title])
    assert premise_sentences(" ".join(sentences)) == sentences


def test_rows_without_a_value_say_nothing_and_spaces_are_evened_out() -> None:
    rows = {"Spouse": ["Lady  Diana\nSpencer ", " ", "Camilla"], "Heir": [], "Title": ["", " "]}
    assert table_sentences(" Charles ", rows) == ("The Spouse of Charles are Lady Diana Spencer, and Camilla.",)


WORDS = st.sampled_from("plum Fig 7 Dub (1972) St. No. a.k.a. U.S. Lemon, melon; Kiwi: the".split())  # noqa: SIM905
titles = st.lists(st.sampled_from(["Mr.", "Fig", "of", "Plum", "(band)", "the", "7"]), min_size=1, max_size=3)
values = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)
dates = values.map("(1972-05-26) {}".format)
rows = st.dictionaries(
    st.lists(st.sampled_from(["Born", "Other", "names", "for", "km²"]), min_size=1, max_size=3).map(" ".join),
    st.lists(st.one_of(values, dates), min_size=1, max_size=3),
    min_size=2,
    max_size=6,
)


@given(title=titles.map(" ".join), rows=rows)
def test_any_tables_sentences_are_found_again_in_its_premise(title: str, rows: dict[str, list[str]]) -> None:
    sentences = table_sentences(title, rows)
    assert premise_sentences(" ".join(sentences)) == sentences
    assert premise_sentences("\n".join(sentences)) == sentences


def test_a_text_that_is_no_tables_is_cut_into_sentences() -> None:
    assert premise_sentences("Ink stains paper. Paper is white.\n\nPens hold ink.") == (
        "Ink stains paper.",
        "Paper is white.",
        "Pens hold ink.",
    )
    assert premise_sentences(" \n") == ()


def test_the_source_gives_each_sentence_once_in_order() -> None:
    premise = " ".join([*PRINTED[4:8], PRINTED[4]])
    hits = Table().lookup(premise, "Curitiba is above sea level.")
    assert [hit.paragraph.text for hit in hits] == PRINTED[4:8]
    assert [hit.rank for hit in hits] == [1, 2, 3, 4]
    assert [hit.paragraph.id for hit in hits] == sorted({hit.paragraph.id for hit in hits})
    assert {hit.paragraph.title for hit in hits} == {""}
