import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cotrail.core.questions import GoldParagraph
from cotrail.core.table_sentences import table_sentences
from cotrail.data.corpora.files import read_corpus
from cotrail.data.datasets.infotabs import as_question
from cotrail.data.datasets.loading import load_questions, sample_file, suffix
from cotrail.data.datasets.sampling import sample_questions
from cotrail.errors import CorpusError, DatasetError
from tests.cases import each_case

HEADER = "annotater_id\ttable_id\thypothesis\tlabel"
TABLE: dict[str, list[str]] = {"Colour": ["black", "blue"], "title": [" Ink  (fluid)"], "Made of": ["soot"]}

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes hypotheses as they are published, with a table T1 beside them."""

    def write(*lines: str, header: str = HEADER, table: Any = TABLE, categories: str = "") -> Path:
        path = tmp_path / "data" / "maindata" / "infotabs_dev.tsv"
        tables = tmp_path / "data" / "tables"
        for folder in (path.parent, tables / "json"):
            folder.mkdir(parents=True, exist_ok=True)
        (tables / "json" / "T1.json").write_text(json.dumps(table))
        if categories:
            (tables / "table_categories.tsv").write_text(categories)
        path.write_text("".join(f"{line}\n" for line in (header, *lines)))
        return path

    return write


def line(hypothesis: str = "Ink is black.", label: str = "E", *, table: str = "T1", annotator: str = "GW0") -> str:
    return "\t".join((annotator, table, hypothesis, label))


def test_hypotheses_become_questions_that_pin_their_table(write: Write) -> None:
    entailed, contradicted = load_questions("infotabs", write(line(), line("Ink is red", "C")))
    assert (entailed.text, entailed.answers) == ("Ink is black. True or False?", ("true",))
    assert (contradicted.text, contradicted.answers) == ("Ink is red. True or False?", ("false",))
    sentences = table_sentences("Ink (fluid)", {"Colour": ["black", "blue"], "Made of": ["soot"]})
    assert len(sentences) == 2
    assert entailed.pinned == GoldParagraph(title="Ink (fluid)", text=" ".join(sentences))
    assert (entailed.kinds, contradicted.kinds) == ({"label": "E"}, {"label": "C"})


def test_neutral_hypotheses_are_left_out(write: Write) -> None:
    path = write(line("Ink is loved.", "N"), line(), line("Ink is new.", "N", table="T404"))
    assert [question.text for question in load_questions("infotabs", path)] == ["Ink is black. True or False?"]


@each_case(
    ("hypothesis", "question"),
    [
        ("Ink is black.", "Ink is black. True or False?"),
        ("Ink is black", "Ink is black. True or False?"),
        (" Ink is black . ", "Ink is black . True or False?"),
        ("Ink is black!", "Ink is black! True or False?"),
        ('They call it "Ink."', 'They call it "Ink." True or False?'),
        ('They call it "Ink"', 'They call it "Ink". True or False?'),
        ("Ink is black (mostly.)", "Ink is black (mostly.) True or False?"),
        (" ", ""),
    ],
)
def test_a_question_has_one_full_stop_behind_its_hypothesis(hypothesis: str, question: str) -> None:
    assert as_question(hypothesis) == question


def test_quoted_cells_are_read_as_spreadsheets_write_them(write: Write) -> None:
    (question,) = load_questions("infotabs", write(line('"Ink is called ""India ink""."')))
    assert question.text == 'Ink is called "India ink". True or False?'


def test_a_question_has_the_same_id_wherever_its_line_stands(write: Write) -> None:
    lines = [line(f"Ink is {number}.") for number in range(5)]
    questions = load_questions("infotabs", write(*lines))
    assert load_questions("infotabs", write(*reversed(lines))) == questions[::-1]
    assert all(question.id.startswith("T1-") for question in questions)


def test_two_annotators_may_write_the_same_and_the_same_line_counts_once(write: Write) -> None:
    assert len(load_questions("infotabs", write(line(), line(annotator="GW1"), line()))) == 2


def test_the_kinds_are_the_category_of_the_table_and_the_label(write: Write) -> None:
    (question,) = load_questions("infotabs", write(line(), categories="table_id\tcategory\nT1\tFluid\n"))
    assert question.kinds == {"category": "Fluid", "label": "E"}


@each_case(
    ("bad", "complaint"),
    [
        (line(label="X"), r"dev\.tsv, line 3: the label is 'X'"),
        (line(table="T2"), r"line 3: its table .*T2\.json isn't there"),
        ("GW0\tT1\tInk is red.", "line 3: 3 cells, and the header names 4"),
        (line("a\0b"), "line 3: .*NUL"),
        (line(" "), "line 3: the question is empty"),
    ],
)
def test_a_bad_line_is_an_error_that_names_its_place(bad: str, complaint: str, write: Write) -> None:
    with pytest.raises(DatasetError, match=complaint):
        load_questions("infotabs", write(line(), bad))


def test_a_header_that_lacks_a_column_is_an_error(write: Write) -> None:
    path = write(line(), header="annotater_id\ttable\thypothesis\tlabel")
    with pytest.raises(DatasetError, match="line 1: the header names no table_id"):
        load_questions("infotabs", path)


def test_text_in_another_encoding_is_an_error(write: Write) -> None:
    path = write(line())
    path.write_bytes(path.read_bytes() + line("Ink is caf").encode() + b"\xe9\n")
    with pytest.raises(DatasetError, match="line 3: this isn't text in UTF-8"):
        load_questions("infotabs", path)


def test_a_table_that_is_no_table_is_an_error_that_names_it(write: Write) -> None:
    with pytest.raises(DatasetError, match=r"T1\.json: "):
        load_questions("infotabs", write(line(), table={"title": "Ink"}))


@pytest.mark.parametrize("content", ["", "\n", HEADER])
def test_a_file_without_hypotheses_is_an_error(content: str, write: Write) -> None:
    path = write()
    path.write_text(content)
    with pytest.raises(DatasetError, match="holds no questions"):
        load_questions("infotabs", path)


def test_hypotheses_given_for_another_dataset_are_an_error_that_names_it(write: Write) -> None:
    with pytest.raises(DatasetError, match=r"line 1: .* name the dataset 'infotabs'"):
        load_questions("strategyqa", write(line()))
    with pytest.raises(CorpusError, match="seems to hold INFOTABS' hypotheses"):
        list(read_corpus([write(line())]))


def test_drawn_hypotheses_are_a_file_of_the_same_form(write: Write) -> None:
    path = write(*(line(f"Ink is {number}", "EC"[number % 2]) for number in range(8)))
    expected = sample_questions(load_questions("infotabs", path), 3, 4, seed=1)
    for name, content, questions in zip("ab", sample_file("infotabs", path, 3, 4, seed=1), expected, strict=True):
        drawn = path.with_name(f"{name}{suffix('infotabs', path)}")
        drawn.write_bytes(content)
        assert drawn.suffix == ".tsv"
        assert load_questions("infotabs", drawn) == questions
