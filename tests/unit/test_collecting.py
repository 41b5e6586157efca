"""Queries and collected paragraphs, held against the rules of the IRCoT authors' released code."""

from collections.abc import Sequence

from cotrail.core.questions import Hit, Paragraph
from cotrail.core.results import Retrieved
from cotrail.systems.ircot import IRCoTSettings, is_reasoning, next_query
from cotrail.systems.parts.retrieval import RetrievalSettings, collect, query_of
from tests.cases import each_case

QUESTION = "Where is the bridge that Ada built ?"
QUERY = "the bridge that Ada built ?"
RETRIEVAL = RetrievalSettings()


def paragraph(title: str, text: str) -> Paragraph:
    return Paragraph(id=f"id of {title}", title=title, text=text)


def found(*paragraphs: Paragraph) -> Retrieved:
    hits = (Hit(paragraph=each, rank=rank, score=9 / rank) for rank, each in enumerate(paragraphs, start=1))
    return Retrieved(hits=tuple(hits))


LETTERS = "abcdefghijklmnopqrst"
PEOPLE = tuple(paragraph(letter * 9, letter * 30) for letter in LETTERS)


# Queries


def test_queries_are_without_the_words_that_only_ask() -> None:
    asking = "Who what When WHERE why which how does is Ada"
    assert query_of(asking, RETRIEVAL) == "Ada"
    attached = "Was Ada, whose bridge it is, here? Where?"
    assert query_of(attached, RETRIEVAL) == attached
    assert query_of("Which is which", RETRIEVAL) == ""


@each_case(
    "sentence",
    [
        "Thus it is old.", "thus, it is.", "So it is.", "So, it is.", "SO IT IS.", "That is, it is.",
        "Therefore it is.", "Therefore, it is.", "Hence it is.", "Henceforth it is.", "Thus far it is.",
        "So far he lives.", "It was 1990 - 1950 = 40 years.", "1 + 1 = 2", "It is 1,200.5 - 200.5 = 1,000.",
    ],
)  # fmt: skip
def test_a_sentence_that_merely_concludes_is_passed_over(sentence: str) -> None:
    assert is_reasoning(sentence, IRCoTSettings().reasoning_openings)


@each_case(
    "sentence",
    [
        "Sofia is old.", "Thusly it is.", "That is old.", "It is so.", "It is, therefore, old.", " So it is.",
        "It was 1864-1811=53.", "It was 1864 - 1811=53.", "6 * 7 = 42", "42 / 6 = 7", "a + b = c",
        "1990 \N{EN DASH} 1950 = 40",
    ],
)  # fmt: skip
def test_any_other_sentence_is_a_query(sentence: str) -> None:
    assert not is_reasoning(sentence, IRCoTSettings().reasoning_openings)


@each_case(
    ("sentences", "query"),
    [
        ((), QUERY),
        (("Ada built it.",), "Ada built it."),
        (("Ada built it.", "Rome has it."), "Rome has it."),
        (("Ada built it.", "So it was Ada."), "Ada built it."),
        (("Ada built it.", "So it was Ada.", "It was 1990 - 1950 = 40."), "Ada built it."),
        (("So it was Ada.", "Hence it was Ada."), QUERY),
    ],
)
def test_the_query_is_the_last_sentence_that_states_something(sentences: tuple[str, ...], query: str) -> None:
    assert next_query(QUESTION, sentences, IRCoTSettings()) == query


# Collecting


def collected(*searches: Sequence[Paragraph], settings: RetrievalSettings = RETRIEVAL) -> tuple[Paragraph, ...]:
    paragraphs: tuple[Paragraph, ...] = ()
    for search in searches:
        paragraphs = collect(paragraphs, found(*search), settings)
    return paragraphs


def test_paragraphs_stay_in_the_order_in_which_they_were_found() -> None:
    assert collected(PEOPLE[3:5], PEOPLE[0:4]) == (*PEOPLE[3:5], *PEOPLE[0:3])


def test_at_most_15_are_collected() -> None:
    assert collected(PEOPLE) == PEOPLE[:15]
    assert collected(PEOPLE[:14], PEOPLE[10:20], PEOPLE) == PEOPLE[:15]
    assert collected(PEOPLE, settings=RetrievalSettings(max_paragraphs=3)) == PEOPLE[:3]


@each_case(("words", "kept"), [(600, 1), (601, 0)])
def test_paragraphs_of_over_600_words_are_discarded(words: int, kept: int) -> None:
    long = paragraph("Long", " ".join(["word"] * words))
    assert collected([long, PEOPLE[0]]) == (long, PEOPLE[0])[1 - kept :]


TEN = paragraph("abcdefghij", "0123456789")
NINETY = "abcdefghiX"  # 2 * 9 / 20: exactly 90 % alike
LESS = "abcdefghXY"


@each_case(
    ("other", "skipped"),
    [
        (paragraph("abcdefghij", "0123456789"), "skipped"),
        (paragraph(NINETY, "0123456789"), "skipped"),
        (paragraph("abcdefghij", "012345678X"), "skipped"),
        (paragraph(NINETY, "X123456789"), "skipped"),
        (paragraph(LESS, "0123456789"), "kept"),
        (paragraph("abcdefghij", "01234567XY"), "kept"),
        (paragraph("abcdefghij", "entirely other"), "kept"),
        (paragraph("entirely other", "0123456789"), "kept"),
        (paragraph("ABCDEFGHIJ", "0123456789"), "kept"),
    ],
)
def test_skipped_is_what_is_90_percent_alike_in_title_and_text(other: Paragraph, skipped: str) -> None:
    expected = (TEN,) if skipped == "skipped" else (TEN, other)
    assert collected([TEN, other]) == expected
    assert collected([TEN], [other]) == expected


def test_alike_means_one_and_the_same_collected_paragraph() -> None:
    title_of_one, text_of_other = paragraph("abcdefghij", "one thing"), paragraph("Else", "0123456789")
    assert collected([title_of_one, text_of_other], [TEN]) == (title_of_one, text_of_other, TEN)


def test_a_skipped_paragraph_takes_no_place() -> None:
    settings = RetrievalSettings(max_paragraphs=2)
    assert collected([PEOPLE[0], PEOPLE[0], PEOPLE[1], PEOPLE[2]], settings=settings) == PEOPLE[:2]
