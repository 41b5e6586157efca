import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.generation.sentences import SentenceStop, first_sentence
from cotrail.prompting.demonstrations import read_demonstrations

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
]


def written(text: str, pieces: list[str]) -> tuple[str, str]:
    """The first sentence of a text that is written piece by piece, and all that was written until then."""
    stop, so_far = SentenceStop(), ""
    for piece in pieces:
        so_far += piece
        if stop.feed(piece):
            break
    return first_sentence(so_far), so_far


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_ends_where_a_reader_would_end_it(sentence: str) -> None:
    text = f"{sentence} Then he left the town."
    assert first_sentence(text) == sentence
    assert written(text, list(text)) == (sentence, f"{sentence} Then ")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", ""),
        (" \n\t\n", ""),
        ("\n\n  He came. She went.", "He came."),
        ("no full stop\nnext line. More", "no full stop"),
        ("1. The first one. 2. The second.", "1. The first one."),
        ("...", "..."),
        ("He came.\u00a0She went away.", "He came."),
    ],
)
def test_odd_texts_have_a_first_sentence_too(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence
    assert written(text, list(text))[0] == sentence


def test_a_newline_ends_a_sentence_at_once_but_not_before_it_begins() -> None:
    stop = SentenceStop()
    assert [stop.feed(piece) for piece in ("\n", " \n", "So", " it", " is", "\n")] == [False] * 5 + [True]


@given(st.text(st.sampled_from("aB .!?\n\"'()1\u00e9"), max_size=80), st.data())
def test_what_is_written_in_any_pieces_is_a_beginning_of_the_text(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    sentence, so_far = written(text, pieces)
    assert text.startswith(so_far)
    assert text.lstrip().startswith(sentence)
    assert "\n" not in sentence
    assert bool(sentence) == bool(text.strip())


@pytest.mark.skipif(not RELEASED.is_dir(), reason="the released prompt files are not beside the repo")
def test_released_chains_have_the_same_first_sentence_while_they_are_written() -> None:
    answers = {d.answer for path in RELEASED.glob("*/*_cot_*.txt") for d in read_demonstrations(path).items}
    assert len(answers) > 60
    for answer in answers:
        for pieces in (list(answer), re.findall(r"\s*\S+", answer), re.findall(r".{1,7}", answer)):
            assert written(answer, pieces)[0] == first_sentence(answer)
