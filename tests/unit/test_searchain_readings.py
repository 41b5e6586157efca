"""What a reader says counts only where it stands in the document, and is recorded either way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.questions import Paragraph
from cotrail.systems.parts.document_reading import stands_in
from tests.cases import each_case
from tests.unit.test_searchain import (
    AFTER_ROLE,
    DOCUMENTS,
    FINAL,
    READ,
    RIGHT,
    ROLE,
    UNKNOWN,
    WRONG,
    World,
    accepted,
    asked,
    run,
    sources,
    tree,
)

TEXT = (
    "Raymond Ochoa\N{RIGHT SINGLE QUOTATION MARK}s role in the U.S. is Arlo, a timid apatosaurus. He played it in "
    "1990\N{EN DASH}1995, for $1,000 (\N{LEFT DOUBLE QUOTATION MARK}Arlo\N{RIGHT DOUBLE QUOTATION MARK}), in "
    "S\xe3o Paulo."
)
FILM = Paragraph(id="2", title="The Good Dinosaur", text=TEXT)


@each_case(
    "answer",
    [
        "Arlo",
        "arlo.",
        '"Arlo"',
        "\N{LEFT DOUBLE QUOTATION MARK}Arlo\N{RIGHT DOUBLE QUOTATION MARK}",
        "Raymond Ochoa",
        "Raymond Ochoa's",
        "raymond  ochoa's role",
        "a timid Apatosaurus",
        "the timid Apatosaurus",
        "US",
        "U.S.",
        "1990",
        "1990-1995",
        "1,000",
        "1000",
        "$1,000",
        "S\xe3o Paulo",
        "Sa\u0303o Paulo",
        "Good Dinosaur",
        "",
        "a",
        "the",
    ],
)
def test_an_answer_stands_in_a_document_in_any_case_and_punctuation(answer: str) -> None:
    assert stands_in(answer, FILM)


@each_case("answer", ["Spot", "no", "99", "Arl", "Dinosaur Raymond", "Raymond Arlo", "A timid dinosaur", "Oslo", "!!"])
def test_an_answer_of_other_words_does_not(answer: str) -> None:
    assert not stands_in(answer, FILM)


def test_scripts_without_spaces_have_no_borders_of_words() -> None:
    assert stands_in("巴黎", Paragraph(id="1", title="法国", text="法国的首都是巴黎。"))
    assert stands_in("กรุงเทพ", Paragraph(id="1", title="", text="เมืองหลวงคือกรุงเทพมหานคร"))
    assert not stands_in("伦敦", Paragraph(id="1", title="法国", text="法国的首都是巴黎。"))


@given(st.text(), st.text(), st.text(), st.text())
def test_whatever_words_are_copied_stand_in_their_document(title: str, before: str, answer: str, behind: str) -> None:
    assert stands_in(answer, Paragraph(id="1", title=title, text=f"{before} {answer} {behind}"))
    assert stands_in(answer, Paragraph(id="1", title=answer, text=title))


@each_case("atom", ["a ", "Arlo", ".", "the ", "\u00bd", "' ", "_", "\u0e01"])
def test_a_million_characters_are_searched(atom: str) -> None:
    long = atom * (1_000_000 // len(atom))
    document = Paragraph(id="1", title="", text=long)
    assert not stands_in("Spot", document)
    assert stands_in(long, document)


def test_a_made_up_reading_neither_corrects_nor_is_told_and_is_recorded() -> None:
    made_up = {**READ, ROLE: "Spot the dog"}
    trace, answer = run(World(WRONG.replace("Spot", "Rex"), FINAL, read=made_up))
    assert sources(answer) == ["model", "model", "corrected"]
    node = tree(answer).nodes[1]
    assert (node.extracted, node.discarded) == ("", "Spot the dog")
    assert node.confidence == pytest.approx(4.59512)
    trace, answer = run(World(UNKNOWN, AFTER_ROLE, FINAL, read=made_up))
    assert "Spot the dog" not in "".join(asked(trace))
    assert asked(trace)[1].startswith(f'The Reference may have the answer for "{ROLE}".')
    assert (tree(answer).nodes[1].source, tree(answer).nodes[1].accepted) == ("completed", "")


def test_any_reading_counts_where_the_settings_say_so() -> None:
    trace, answer = run(World(UNKNOWN, AFTER_ROLE, FINAL, read={**READ, ROLE: "Spot"}), readings="any")
    assert f'the answer for "{ROLE}" should be "Spot"' in asked(trace)[1]
    assert (ROLE, "Spot") in accepted(answer)


def test_a_reading_that_counts_has_nothing_discarded_in_its_record() -> None:
    _, answer = run(World(RIGHT, FINAL))
    assert all(not node.discarded for node in tree(answer).nodes)
    assert [DOCUMENTS[node.query].digest for node in tree(answer).nodes] == [n.paragraph for n in tree(answer).nodes]
