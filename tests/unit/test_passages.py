"""Corpora under the names by which they are published, and the same strictness for questions and paragraphs."""

import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.common.text_files import MAX_ID_BYTES, MAX_PARAGRAPH_CHARACTERS
from cotrail.core.questions import Paragraph
from cotrail.data.corpora.files import read_corpus
from cotrail.data.datasets.loading import load_questions
from cotrail.errors import CorpusError, InputError
from tests.cases import each_case

TEXT = "Ink stains."
PUBLISHED = {
    "cotrail": ({"id": "1", "title": "Ink", "text": TEXT}, "Ink", TEXT),
    "without a title": ({"id": "1", "text": TEXT}, "", TEXT),
    "BEIR": ({"_id": "1", "title": "Ink", "text": TEXT, "metadata": {"url": ["x"]}}, "Ink", TEXT),
    "BEIR, of a title alone": ({"_id": "1", "title": "Ink", "text": ""}, "Ink", ""),
    "Pyserini": ({"id": "1", "contents": TEXT}, "", TEXT),
    "Pyserini with a title": ({"id": "1", "contents": f"Ink\n{TEXT}\nIt dries."}, "Ink", f"{TEXT}\nIt dries."),
    "Pyserini's Wikipedia": ({"id": "1", "contents": f'"The ""Ink"""\n{TEXT}'}, 'The "Ink"', TEXT),
    "Pyserini with a field title": ({"id": "1", "title": "Ink", "contents": f"A\n{TEXT}"}, "Ink", f"A\n{TEXT}"),
    "Pyserini, first a paragraph": ({"id": "1", "contents": f"{'x' * 256}\ny"}, "", f"{'x' * 256}\ny"),
    "Tevatron": ({"docid": "1", "title": "Ink", "text": TEXT}, "Ink", TEXT),
    "passages": ({"docid": "1", "wikipedia_title": "Ink", "passage": TEXT}, "Ink", TEXT),
    "a title of null": ({"id": "1", "title": None, "text": TEXT}, "", TEXT),
}


def written(folder: Path, *lines: object) -> Path:
    path = folder / "file.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def read(folder: Path, *lines: object) -> list[Paragraph]:
    return list(read_corpus([written(folder, *lines)]))


@each_case("name", PUBLISHED)
def test_a_published_form_is_read(name: str, tmp_path: Path) -> None:
    record, title, text = PUBLISHED[name]
    expected = [Paragraph(id="1", title=title, text=text)]
    assert read(tmp_path, record) == expected
    assert read(tmp_path, json.dumps([record])) == expected


def test_the_forms_may_be_mixed(tmp_path: Path) -> None:
    lines = ({"id": "1", "text": "a"}, {"_id": "2", "title": "", "text": "b"}, {"id": "3", "contents": "c"})
    assert [each.text for each in read(tmp_path, *lines)] == ["a", "b", "c"]


def test_the_table_of_dpr_is_read(tmp_path: Path) -> None:
    lines = ("id\ttext\ttitle", '1\t"Aaron ( or ; ""Ahärôn"") is a prophet."\tAaron', "2\tInk stains.\tInk")
    assert read(tmp_path, *lines) == [
        Paragraph(id="1", title="Aaron", text='Aaron ( or ; "Ahärôn") is a prophet.'),
        Paragraph(id="2", title="Ink", text=TEXT),
    ]


@each_case(
    ("lines", "said"),
    [
        (("0\tInk stains.", "1\tIt dries."), "line 2: there is no field `text` or .*, ink stains"),
        (("id\ttext\ttitel", "1\ta\tb"), r"line 2: there is no key `titel` \(did you mean title\?\); correct"),
        (("id\ttext\ttext", "1\ta\tb"), "line 1: the header names 'text' twice"),
        (("id\ttext\ttitle", "1\ta"), "line 2: 2 cells, and the header names 3"),
        (("id\ttext", "1\t "), "line 2: the text is empty"),
    ],
)
def test_a_table_that_can_not_be_used_is_refused(lines: tuple[str, ...], said: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=said):
        read(tmp_path, *lines)


def test_a_packed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "psgs_w100.tsv.gz"
    path.write_bytes(gzip.compress(b"id\ttext\ttitle\n1\ta\tb\n"))
    assert list(read_corpus([path])) == [Paragraph(id="1", title="b", text="a")]


@each_case(
    ("record", "said"),
    [
        ({"id": "1", "_id": "1", "text": "a"}, "`id` and `_id` mean the same"),
        ({"id": "1", "text": "a", "contents": "b"}, "`text` and `contents` mean the same"),
        ({"id": "1"}, "there is no field `text` or `contents` or `passage`"),
        ({"id": "1", "text": "a", "titel": "b"}, r"there is no key `titel` \(did you mean title\?\); correct the name"),
        ({"_id": "1", "title": " ", "text": " "}, "the text is empty"),
        ({"id": "1", "contents": "\n"}, "the text is empty"),
    ],
)
def test_what_is_ambiguous_missing_or_misspelt_is_refused(record: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=f"file.jsonl, line 2: {said}"):
        read(tmp_path, {"id": "0", "text": "x"}, record)


# The same strictness for questions and paragraphs

Record = Callable[..., dict[str, object]]


def question(**changes: object) -> dict[str, object]:
    return {"id": "1", "question": "Who?"} | changes


def paragraph(**changes: object) -> dict[str, object]:
    return {"id": "1", "text": "Ink."} | {("text" if key == "question" else key): changes[key] for key in changes}


READERS: dict[Record, Callable[[Path], object]] = {
    question: lambda path: load_questions("jsonl", path),
    paragraph: lambda path: list(read_corpus([path])),
}
REFUSED: list[tuple[dict[str, object], str]] = [
    ({"id": ""}, "the id is empty"),
    ({"id": True}, r"`id` must be text in quotation marks.*not true"),
    ({"id": "a\nb"}, r"the id \"a\\nb\" holds a line break"),
    ({"id": "é" * MAX_ID_BYTES}, "the id has 2,000 bytes, and at most 1,000 are taken"),
    ({"question": " \n"}, "the (question|text) is empty"),
    ({"question": ["x"]}, r'must be text in quotation marks, not \["x"\]'),
    ({"question": "a\0b"}, "NUL character"),
    ({"question": "\ud800"}, "valid JSON"),
    ({"question": "x" * (MAX_PARAGRAPH_CHARACTERS + 1)}, r"characters, and 1,000,000 is the most"),
]


@each_case("record", READERS)
@each_case(("changes", "said"), REFUSED)
def test_questions_and_paragraphs_are_refused_alike(
    record: Record, changes: dict[str, object], said: str, tmp_path: Path
) -> None:
    path = written(tmp_path, record(id="0", question="Another."), record(**changes))
    with pytest.raises(InputError, match=f"file.jsonl, line 2: .*{said}"):
        READERS[record](path)


@pytest.mark.parametrize("record", READERS)
def test_an_id_of_two_records_is_refused(record: Record, tmp_path: Path) -> None:
    path = written(tmp_path, record(), record(question="Another."))
    with pytest.raises(InputError, match=r"line 2: .*the id '1'"):
        READERS[record](path)


@pytest.mark.parametrize("record", READERS)
def test_metadata_may_hold_anything(record: Record, tmp_path: Path) -> None:
    READERS[record](written(tmp_path, record(metadata={"source": [1, None]})))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"answers": ["x", " "]}, "the answer is empty"),
        ({"chain": [""]}, "the sentence of the chain is empty"),
        ({"gold": [{"title": "T", "text": ""}]}, "the text of a paragraph is empty"),
    ],
)
def test_what_a_question_names_is_not_empty(changes: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"line 1: {said}"):
        load_questions("jsonl", written(tmp_path, question(**changes)))


KEYS = st.sampled_from(["id", "_id", "docid", "title", "text", "contents", "question", "gold", "answers", "paragraphs"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
LINES = st.builds(json.dumps, st.dictionaries(KEYS, VALUES, max_size=4) | VALUES).map(str.encode) | st.binary()


@given(st.lists(LINES, max_size=3).map(b"\n".join), st.sampled_from(list(READERS.values())))
def test_any_file_is_read_or_refused_with_its_place(content: bytes, read: Callable[[Path], object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.jsonl"
        path.write_bytes(content)
        said = refusal(read, path)
        assert said is None or (str(path) in said and "\n" not in said)


def refusal(read: Callable[[Path], object], path: Path) -> str | None:
    """How a file is refused; None where it is read."""
    try:
        read(path)
    except InputError as error:
        return str(error)
    return None
