"""Where chains of thought end, however they come in pieces."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.generation import Ended, Until
from cotrail.engines.language_models.stop_conditions import kept, stop_condition, why_ended
from tests.cases import each_case

CHAIN = "Ink stains.\n\nThus it does. So the answer is yes."


@each_case(
    "behind",
    [
        "",
        "\n\nQ: Does glue?\nA: Glue sticks.",
        "\nQ:",
        "\n\n\n  Wikipedia Title: Glue\nGlue sticks.",
        "\nQuestion: Does glue stick?",
        "\n\nThe Colour of Glue are White.\nQuestion: Glue is white. True or False?",
    ],
)
def test_a_chain_of_several_lines_ends_where_a_further_demonstration_begins(behind: str) -> None:
    assert kept(f" {CHAIN}{behind}", "chain") == CHAIN
    assert kept(f" {CHAIN}{behind}", "end") == f"{CHAIN}{behind}"
    assert kept(f" {CHAIN}{behind}", "line") == "Ink stains."


@each_case(
    ("text", "chain"),
    [
        ("\n\nQ: Does glue?", ""),
        ("Q: Does glue?", ""),
        ("The letter Q: it is one.", "The letter Q: it is one."),
        ("Ink stains.\n\nSo the answer is no.\nQuestion: Does glue?", "Ink stains.\n\nSo the answer is no."),
    ],
)
def test_a_mark_is_one_only_where_a_line_begins(text: str, chain: str) -> None:
    assert kept(text, "chain") == chain


PARTS = [
    "Ink stains.",
    " ",
    "\n",
    "\n\n",
    "Q:",
    "Question:",
    "Wikipedia Title:",
    "So the answer is no.",
    "Q",
    ":",
    "A: ",
]


@given(
    st.lists(st.sampled_from(PARTS), max_size=14).map("".join),
    st.lists(st.integers(0, 90)),
    st.sampled_from(["line", "chain", "end"]),
)
def test_what_is_kept_is_the_same_however_the_text_comes_in_pieces(text: str, cuts: list[int], until: Until) -> None:
    ends = sorted({0, *(min(cut, len(text)) for cut in cuts), len(text)})
    enough, written = stop_condition(until), ""
    for start, end in pairwise(ends):
        written += text[start:end]
        if enough(text[start:end]):
            break
    assert kept(written, until) == kept(text, until)


@each_case(
    ("text", "until", "stop", "ended"),
    [
        (" It sticks", "stop", ("\n\n",), ("length", "")),
        (" It sticks.\n\nQ", "stop", ("\n\n",), ("stop", "\n\n")),
        (" It sticks.\n", "stop", ("\n\n",), ("length", "")),
        (" It sticks. It ", "sentence", ("glue",), ("until", "")),
        (" It sticks. It glue", "sentence", ("glue",), ("until", "")),
        (" It sticks.", "sentence", (), ("length", "")),
        (" It glues.\n", "line", ("glue",), ("stop", "glue")),
        (" It sticks.\nglue", "line", ("glue",), ("until", "")),
        ("\n\nQ: Does it?", "chain", (), ("until", "")),
    ],
)
def test_a_text_ends_for_what_comes_first_in_it(
    text: str, until: Until, stop: tuple[str, ...], ended: tuple[Ended, str]
) -> None:
    assert why_ended(text, until, stop, "length") == ended
