import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cotrail.core.questions import Paragraph
from cotrail.data.corpora.files import read_corpus
from cotrail.errors import CorpusError
from tests.cases import each_case

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes records as JSON Lines; text goes in as it is."""

    def write(*records: object, name: str = "corpus.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(f"{r if isinstance(r, str) else json.dumps(r)}\n" for r in records))
        return path

    return write


def record(id_: str = "1", title: str = "Ink", text: str = "Ink stains.") -> dict[str, str]:
    return {"id": id_, "title": title, "text": text}


def test_paragraphs_come_in_the_files_order(write: Write) -> None:
    first = write(record("2"), "", record("1", text="Other."), name="a.jsonl")
    second = write(record("3", title="Pen") | {"url": "ignored"}, name="b.jsonl")
    assert [paragraph.id for paragraph in read_corpus([first, second])] == ["2", "1", "3"]


def test_the_same_content_is_kept_once_under_its_first_id(write: Write) -> None:
    path = write(record("x"), record("y"), record("x"), record("z", title="Pen"))
    assert [paragraph.id for paragraph in read_corpus([path])] == ["x", "z"]


def test_one_id_for_two_paragraphs_is_an_error(write: Write) -> None:
    path = write(record("1"), record("2", title="Pen"), record("2", title="Paper"))
    with pytest.raises(CorpusError, match=r"corpus\.jsonl, line 3: the id '2'"):
        list(read_corpus([path]))


def test_an_id_of_a_paragraph_left_out_names_no_other(write: Write) -> None:
    path = write(record("x"), record("y"), record("y", title="Pen"))
    with pytest.raises(CorpusError, match="line 3: the id 'y'"):
        list(read_corpus([path]))


@each_case(
    ("line", "complaint"),
    [
        ("not JSON", "valid JSON"),
        ('{"id": "2"', "valid JSON"),
        ("[1]", "must be an object"),
        ('{"id": "2", "title": "T"}', "`text`"),
        ('{"id": true, "title": "T", "text": "t"}', r"`id` must be text in quotation marks"),
        ('{"id": " ", "title": "T", "text": "t"}', "the id is empty"),
        ('{"id": "2", "title": "T", "text": "a\\u0000b"}', "NUL"),
        ('{"id": "2", "title": "T", "text": "a\0b"}', "NUL"),
        ('{"id": "2", "title": "T", "text": "a\\ud800b and so on"}', "valid JSON"),
        ('{"id": "2", "title": "T", "paragraphs": [1]}', "must be an object"),
    ],
)
def test_a_line_that_can_not_be_used_is_named(write: Write, line: str, complaint: str) -> None:
    path = write(record("1"), line)
    with pytest.raises(CorpusError, match=rf"corpus\.jsonl, line 2: .*{complaint}"):
        list(read_corpus([path]))


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b'{"id": "1", "title": "T", "text": "\xff"}\n')
    with pytest.raises(CorpusError, match=r"line 1: .*UTF-8"):
        list(read_corpus([path]))


def test_a_backslash_before_u0000_is_text(write: Write) -> None:
    (paragraph,) = read_corpus([write(record(text="the escape \\u0000"))])
    assert paragraph.text == "the escape \\u0000"


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.json"])
def test_an_empty_corpus_is_an_error(write: Write, name: str) -> None:
    with pytest.raises(CorpusError, match=r"no paragraphs in .*corpus"):
        list(read_corpus([write(name=name)]))


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.json"])
def test_a_file_that_is_not_there_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(CorpusError, match=r"can't be read .No such file"):
        list(read_corpus([tmp_path / name]))


def test_reading_does_not_wait_for_the_end_of_the_file(write: Write) -> None:
    paragraphs = read_corpus([write(record("1"), "not JSON")])
    assert next(paragraphs) == Paragraph(id="1", title="Ink", text="Ink stains.")


def test_contexts_of_a_hotpotqa_file_are_a_corpus(write: Write) -> None:
    contexts = [["Ink", ["Ink stains.", " It dries. "]], ["Pen", ["A pen writes."]]]
    path = write(json.dumps([{"_id": "q1", "context": contexts}, {"_id": "q2", "context": contexts}]), name="dev")
    paragraphs = list(read_corpus([path]))
    assert [(p.title, p.text) for p in paragraphs] == [("Ink", "Ink stains. It dries."), ("Pen", "A pen writes.")]
    assert [p.id for p in paragraphs] == [p.digest[:32] for p in paragraphs]


def test_a_hotpotqa_entry_that_can_not_be_used_is_named(write: Write) -> None:
    path = write('[{"context": []}, {"question": "?"}]', name="dev.json")
    with pytest.raises(CorpusError, match=r"dev\.json, entry 2: .*`context`"):
        list(read_corpus([path]))


def test_contexts_of_a_musique_file_are_a_corpus(write: Write) -> None:
    paragraphs = [{"idx": 0, "title": "Ink", "paragraph_text": "Ink stains.", "is_supporting": True}]
    path = write({"id": "q1", "paragraphs": paragraphs}, {"id": "q2", "paragraphs": paragraphs})
    (paragraph,) = read_corpus([path])
    assert (paragraph.title, paragraph.text) == ("Ink", "Ink stains.")
    assert paragraph.id == paragraph.digest[:32]


def test_contexts_of_a_file_of_the_ircot_authors_are_a_corpus(write: Write) -> None:
    contexts = [{"idx": 0, "title": "Ink", "paragraph_text": "Ink stains.", "is_supporting": True}]
    path = write({"question_id": "q1", "question_text": "?", "contexts": contexts})
    (paragraph,) = read_corpus([path])
    assert (paragraph.title, paragraph.text) == ("Ink", "Ink stains.")


def test_a_truncated_list_is_an_error_that_names_the_entry(write: Write) -> None:
    whole = json.dumps([{"context": [["Ink", ["Ink stains."]]]}] * 3)
    path = write(whole[:-5], name="dev.json")
    paragraphs = read_corpus([path])
    assert next(paragraphs).title == "Ink"
    with pytest.raises(CorpusError, match=r"dev\.json, entry 3: .*valid JSON"):
        next(paragraphs)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (json.dumps([{"title": "Pens", "text": "On pens.", "questions": []}]), "IIRC's questions"),
        (json.dumps({f"page {number}": "<p>text" for number in range(50)}), "IIRC's articles"),
        ('{"id": "q1", "question": "What?"}', "questions in cotrail's own form"),
    ],
)
def test_a_file_without_paragraphs_is_an_error_that_says_what_it_is(content: str, what: str, write: Write) -> None:
    with pytest.raises(CorpusError, match=f"seems to hold {what}, which are no paragraphs"):
        next(read_corpus([write(content)]))
