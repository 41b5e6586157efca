import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.common import sentence_boundaries
from cotrail.common.sentence_boundaries import SentenceStop, first_sentence, segments, sentences
from cotrail.data.demonstrations.sets import read_demonstrations
from tests.cases import each_case

RELEASED = Path(__file__).parents[2].parent / "shared" / "data" / "ircot_prompts"

SENTENCES = [
    "Dr. Smith lived in St. Louis.",
    "He was born in the U.S. and died there.",
    "J. K. Rowling wrote it.",
    "It was directed by Joseph M. Newman.",
    "George W. Bush was president.",
    "John F. Kennedy Jr. was born.",
    "It is 3.5 km long.",
    "He said ... and left.",
    "He waited...",
    'He said "Stop. Go." and left.',
    '"Stop!" he said.',
    "The band (formed c. 1990. Or so) played.",
    "Mr. and Mrs. Brown came at 5 p.m. to the house.",
    "Yahoo! Inc. is a company.",
    "Is it so?",
    "So the answer is: The Operation M.D..",
    "It stars Peter Cushing as Dr. Who, and Mr. Right.",
    "The schools are (1) the Academy of Music (2) Mozarteum University (3) the Croatian Music Institute.",
    "Boy or Girl? is a film of 1962.",
    "He owns Oh Boy! (album) and Where Are You Going, Dad? (film).",
    "She sang Cry! Cry! Cry! in 1954.",
    "They wrote ...Baby One More Time and We Are... Robin.",
]

BEFORE_A_NAME = [
    "Bonnie and Clyde was directed by Arthur Penn.",
    "She sang You Changed Me.",
    "It is in the Museum of Art.",
    "She was the wife of Philip May.",
    "It is a part of Alphabet Inc.",
    "He sells films, books etc.",
]

ITEMS = [
    "(2) Mozarteum was founded in 1841.",
    "(1) A and (2) B.",
    "(a) The first school was founded in 1841.",
    "The schools are (1) the Academy of Music and (2) Mozarteum, founded in 1841.",
    "(1) Is it so?",
]

AGAIN = [
    ("The director is Sen.", "Sen was born in 1950."),
    ("The premier was Hun Sen.", "Hun Sen was born in 1952."),
    ("(1) A and (2) B.", "B was founded in 1841."),
]

NAMES = [
    "It is by J. K. Rowling",
    "He met Sen. John McCain",
    "She is Mrs. Ida May Brown",
    "He saw Godzilla vs. Penn Hall",
]


def written(text: str, pieces: list[str]) -> tuple[str, str]:
    """The first sentence of a text that is written piece by piece, and all that was written until then."""
    stop, so_far = SentenceStop(), ""
    for piece in pieces:
        so_far += piece
        if stop.feed(piece):
            break
    return first_sentence(so_far), so_far


@each_case("sentence", SENTENCES)
def test_a_sentence_ends_where_a_reader_would_end_it(sentence: str) -> None:
    text = f"{sentence} Then he left the town."
    assert first_sentence(text) == sentence
    assert written(text, list(text)) == (sentence, f"{sentence} Then ")


@each_case("sentence", BEFORE_A_NAME)
@each_case("following", ["Franz Josef Gottlieb died.", "Étienne left.", "He left."])
def test_a_word_that_is_an_abbreviation_elsewhere_ends_a_sentence(sentence: str, following: str) -> None:
    text = f"{sentence} {following} So it is."
    assert first_sentence(text) == sentence
    assert written(text, list(text))[0] == sentence


@each_case("sentence", ITEMS)
def test_the_mark_of_an_item_hides_no_end(sentence: str) -> None:
    text = f"{sentence} So the answer is: X."
    assert first_sentence(text) == sentence
    assert written(text, list(text))[0] == sentence


@each_case(("sentence", "following"), AGAIN)
def test_a_name_that_is_said_again_begins_a_sentence(sentence: str, following: str) -> None:
    text = f"{sentence} {following} So the answer is: X."
    assert list(sentences(text)) == [sentence, following, "So the answer is: X."]
    assert written(text, list(text))[0] == sentence


@each_case("space", ["\u00a0", "\u2003", "\u3000", "\x85", "\u2028"])
def test_no_space_before_a_full_stop_stops_a_worker(space: str) -> None:
    # sentencex panics there, with an exception that no handler of errors takes for one.
    text = f"It is by J{space}. K{space}. Rowling{space}. So it is. "
    assert written(text, list(text))[0] == first_sentence(text)
    assert "".join(segments(text)) == text


@pytest.mark.parametrize("piece", ["1", "1 ", "a. ", "Dr. ", "1. ", '" ', "(1) ", "“a. "])
def test_few_looks_are_taken_at_a_text_without_an_end(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    ends = sentence_boundaries.segment_ends

    def counting(text: str) -> list[int]:
        looked_at.append(len(text))
        return ends(text)

    monkeypatch.setattr(sentence_boundaries, "segment_ends", counting)
    stop = SentenceStop()
    for _ in range(20_000):
        if stop.feed(piece):
            break
    assert sum(looked_at) < 1_000_000


@each_case("name", NAMES)
def test_an_abbreviation_before_a_name_ends_nothing(name: str) -> None:
    assert first_sentence(f"{name}. Then he left.") == f"{name}."


@given(
    st.lists(st.sampled_from([*SENTENCES, *BEFORE_A_NAME, *NAMES, "Franz Josef died.", "(1) So.", "It"]), max_size=4),
    st.integers(1, 9),
)
def test_a_sentence_is_the_same_while_it_is_written_and_afterwards(sentences: list[str], size: int) -> None:
    text = " ".join(sentences)
    assert written(text, re.findall(f".{{1,{size}}}", text))[0] == first_sentence(text)


@each_case(
    ("text", "sentence"),
    [
        ("", ""),
        (" \n\t\n", ""),
        ("  He came. She went.", "He came."),
        ("\n\nHe came. She went.", ""),
        (" \r\nQ: Who came?", ""),
        ("no full stop\nnext line. More", "no full stop"),
        ("1. The first one. 2. The second.", "1. The first one."),
        ("...", "..."),
        ("He came.\u00a0She went away.", "He came."),
    ],
)
def test_odd_texts_have_a_first_sentence_too(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence
    assert written(text, list(text))[0] == sentence


def test_a_line_break_ends_a_sentence_at_once() -> None:
    stop = SentenceStop()
    assert [stop.feed(piece) for piece in (" ", "So", " it", " is", "\n")] == [False] * 4 + [True]


@each_case("opening", ["\n", " \n", "\n\n", " \nQ: Who?"])
def test_a_line_break_before_any_word_ends_the_chain_at_once(opening: str) -> None:
    assert written("", [opening, "He came. ", "She went."]) == ("", opening)


@given(st.text(st.sampled_from("aB .!?\n\"'()1\u00e9"), max_size=80), st.data())
def test_what_is_written_in_any_pieces_is_a_beginning_of_the_text(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    sentence, so_far = written(text, pieces)
    assert text.startswith(so_far)
    assert text.lstrip().startswith(sentence)
    assert "\n" not in sentence
    assert bool(sentence) == bool(text.partition("\n")[0].strip())


@pytest.mark.skipif(not RELEASED.is_dir(), reason="the released prompt files are not beside the repo")
def test_released_chains_have_the_same_first_sentence_while_they_are_written() -> None:
    answers = {d.answer for path in RELEASED.glob("*/*_cot_*.txt") for d in read_demonstrations(path).items}
    assert len(answers) > 60
    for answer in answers:
        for pieces in (list(answer), re.findall(r"\s*\S+", answer), re.findall(r".{1,7}", answer)):
            assert written(answer, pieces)[0] == first_sentence(answer)


def test_what_goes_on_without_end_is_looked_at_no_longer() -> None:
    stop = SentenceStop()
    assert not any(stop.feed("and so on ") for _ in range(100_000))
    assert not stop.feed("It is so. Then ")
    assert stop.feed("on.\n")
