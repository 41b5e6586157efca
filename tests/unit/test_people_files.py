"""Files as people have them: questions and documents in any usual form, under any names, and what can't be read."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given as tried_with
from hypothesis import strategies as st
from pyarrow import parquet
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from cotrail.common import tables, text_files
from cotrail.common.tables import form_of
from cotrail.core.questions import Question
from cotrail.data.corpora.files import read_corpus
from cotrail.data.datasets.loading import load_questions, reading_of, sample_file, suffix
from cotrail.data.datasets.registry import DATASETS
from cotrail.data.datasets.spec import id_of
from cotrail.errors import CorpusError, DatasetError, InputError, NotInstalledError
from cotrail.services.runs.requests import make_request
from cotrail.services.runs.submission import prepare
from tests.cases import each_case
from tests.unit.commands import Given, Run

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": 'Who made "Ink"?', "answers": ["Ann", "Ann Lee"]},
    {"id": "b", "question": "Where, and\nwhen?", "answers": ["1871"]},
]


def table(separator: str = ",", end: str = "\n", rows: list[dict[str, Any]] = ROWS) -> str:
    """The rows as a table, all cells quoted."""

    def cell(value: Any) -> str:
        text = "|".join(value) if isinstance(value, list) else str(value)
        return '"' + text.replace('"', '""') + '"'

    return "".join(f"{separator.join(map(cell, row))}{end}" for row in (list(rows[0]), *(r.values() for r in rows)))


def lines(*rows: object) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def parquet_bytes(rows: list[dict[str, Any]] = ROWS) -> bytes:
    written = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows), written)
    return written.getvalue()


def arrow_bytes(rows: list[dict[str, Any]] = ROWS) -> bytes:
    written, content = io.BytesIO(), pa.Table.from_pylist(rows)
    with pa.ipc.new_stream(written, content.schema) as stream:
        stream.write_table(content, max_chunksize=1)
    return written.getvalue()


def saved(folder: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    """A folder as `Dataset.save_to_disk` makes it, in two shards."""
    folder.mkdir(parents=True)
    for number, row in enumerate(rows):
        (folder / f"data-{number:05}-of-{len(rows):05}.arrow").write_bytes(arrow_bytes([row]))
    (folder / "dataset_info.json").write_text("{}")
    (folder / "state.json").write_text("{}")
    return folder


FORMS: dict[str, bytes] = {
    "q.csv": table().encode(),
    "windows.csv": b"\xef\xbb\xbf" + table(end="\r\n").encode(),
    "semicolon.csv": table(";").encode(),
    "q.tsv": table("\t").encode(),
    "q.json": json.dumps(ROWS, indent=1).encode(),
    "q.jsonl": lines(*ROWS).encode(),
    "nameless": lines(*ROWS).encode(),
    "q.parquet": parquet_bytes(),
    "q.arrow": arrow_bytes(),
    "q.csv.gz": gzip.compress(table().encode()),
    "q.jsonl.zst": zstd.compress(lines(*ROWS).encode()),
    "q.parquet.gz": gzip.compress(parquet_bytes()),
}


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def parts(questions: tuple[Question, ...]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(each.id, each.text, each.answers) for each in questions]


READ = [("a", 'Who made "Ink"?', ("Ann", "Ann Lee")), ("b", "Where, and\nwhen?", ("1871",))]


# Questions in every form


@each_case("name", FORMS)
def test_questions_are_read_from_any_form(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, name, FORMS[name])
    assert parts(load_questions("jsonl", path)) == READ


def test_questions_are_read_from_a_folder_that_datasets_saved(tmp_path: Path) -> None:
    assert parts(load_questions("jsonl", saved(tmp_path / "one"))) == READ
    saved(tmp_path / "all" / "test")
    assert parts(load_questions("jsonl", tmp_path / "all")) == READ
    saved(tmp_path / "all" / "train")
    with pytest.raises(DatasetError, match=r"all has the splits test, train; name one of them, as .*all/test"):
        load_questions("jsonl", tmp_path / "all")
    (tmp_path / "one" / "data-00001-of-00002.arrow").unlink()
    with pytest.raises(DatasetError, match=r"has 1 files data-\*.arrow, and their names say 2; copy all of them"):
        load_questions("jsonl", tmp_path / "one")


@each_case(
    ("record", "read"),
    [
        ({"query": "Who?", "answer": "Ann"}, ("Who?", ("Ann",))),
        ({"prompt": "Who?", "gold_answer": "Ann|Bo"}, ("Who?", ("Ann|Bo",))),
        ({"Question": "Who?", "Answer": 1871}, ("Who?", ("1871",))),
        ({"question": "Who?", "golden_answers": [1871.0, 2.5]}, ("Who?", ("1871", "2.5"))),
        ({"question": "Who?", "answer": True}, ("Who?", ("yes",))),
        ({"question": "Who?", "answers": {"text": ["Ann"], "answer_start": [0]}}, ("Who?", ("Ann",))),
        ({"question": "Who?", "answers": None}, ("Who?", ())),
        ({"question": "Who?", "answer": " "}, ("Who?", ())),
        ({"question": "Who?", "query": "other", "answers": ["a"], "answer": "b"}, ("Who?", ("a",))),
    ],
)
def test_usual_names_and_types_are_recognised(
    record: dict[str, Any], read: tuple[str, tuple[str, ...]], tmp_path: Path
) -> None:
    [question] = load_questions("jsonl", written(tmp_path, "q.jsonl", lines(record)))
    assert (question.text, question.answers) == read


@each_case("name", ["id", "_id", "qid", "question_id", "ID"])
def test_an_id_may_be_a_whole_number(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, "q.jsonl", lines({name: 7, "question": "Who?"}))
    assert [each.id for each in load_questions("jsonl", path)] == ["7"]
    path = written(tmp_path, "q.jsonl", lines({name: 7.0, "question": "Who?"}, {name: None, "question": "What?"}))
    assert [each.id for each in load_questions("jsonl", path)] == ["7", id_of("What?")]


def test_texts_that_a_column_has_as_bytes_are_texts(tmp_path: Path) -> None:
    rows = [{"question": b"Who?", "answers": ["Zoë".encode()], "picture": b"\xff\xd8"}]
    [question] = load_questions("jsonl", written(tmp_path, "q.parquet", parquet_bytes(rows)))
    assert (question.text, question.answers) == ("Who?", ("Zoë",))


def test_the_line_by_which_excel_names_the_separator_is_none_of_the_table(tmp_path: Path) -> None:
    [question] = load_questions(
        "jsonl", written(tmp_path, "q.csv", "sep=;\r\nquestion;answer\r\nWho, and when?;Ann\r\n")
    )
    assert (question.text, question.answers) == ("Who, and when?", ("Ann",))


def test_cells_hold_lists_between_bars_or_as_json(tmp_path: Path) -> None:
    text = (
        'id,question,answers,gold,kinds\n1,Who?,Ann | Bo,,"{""level"": ""hard""}"\n2,What?,"[""a|b""]",,\n3,When?,,,\n'
    )
    first, second, third = load_questions("jsonl", written(tmp_path, "q.csv", text))
    assert (first.answers, first.kinds) == (("Ann", "Bo"), {"level": "hard"})
    assert second.answers == ("a|b",)
    assert (third.answers, third.gold) == ((), ())
    with pytest.raises(DatasetError, match="line 2: the answers \"\\['Ann'\\]\" are no JSON list; write them as"):
        load_questions("jsonl", written(tmp_path, "q.csv", "question,answers\nWho?,['Ann']\n"))


def test_a_map_names_fields_and_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "q.csv", "nr,ask,right,query\n1,Who?,Ann,no\n")
    fields = {"question": "ask", "answers": "right", "id": "nr"}
    assert parts(load_questions("jsonl", path, fields=fields)) == [("1", "Who?", ("Ann",))]
    said = r"reads no field \"quest\" and no \"golds\" .*; the file has no field \"asks\" and no \"no\" \(there are: nr"
    with pytest.raises(DatasetError, match=said):
        load_questions("jsonl", path, fields={"quest": "asks", "golds": "no"})
    with pytest.raises(
        DatasetError, match="no field is named `question` or `query` or `prompt`; there are: a, b; name"
    ):
        load_questions("jsonl", written(tmp_path, "other.csv", "a,b\n1,2\n"))
    with pytest.raises(DatasetError, match="a map of fields is for questions of your own"):
        load_questions("nq", path, fields=fields)


def test_misspelt_fields_are_all_named_unless_a_map_says_what_there_is(tmp_path: Path) -> None:
    path = written(tmp_path, "q.jsonl", lines({"question": "Who?", "anwsers": "a", "distractor": []}))
    with pytest.raises(DatasetError, match=r"`anwsers` \(did you mean answers\?\), `distractor` \(did you mean"):
        load_questions("jsonl", path)
    assert load_questions("jsonl", path, fields={"question": "question"})[0].answers == ()


def test_how_a_file_is_read_is_said(tmp_path: Path) -> None:
    text = "query,gold_answer,source\nWho?,Ann,web\n"
    path = written(tmp_path, "questions.csv", text)
    assert reading_of("jsonl", path) == (
        "questions.csv: read as CSV; question=query, answers=gold_answer; ignored: source"
    )
    unscored = written(tmp_path, "open.jsonl", lines({"question": "Who?", "correct_answer": "Ann"}))
    assert reading_of("jsonl", unscored).endswith("; no answers, so nothing is scored (`--map answers=FIELD`)")
    hotpot = written(tmp_path, "hub.jsonl", lines(HOTPOT))
    assert reading_of("hotpotqa", hotpot).endswith("HotpotQA's questions as Hugging Face has them")
    assert reading_of("jsonl", hotpot).endswith("which `--dataset hotpotqa` scores by its own rules")


def test_a_run_has_a_map_and_records_how_its_questions_were_read(given: Given, tmp_path: Path) -> None:
    path = written(tmp_path, "q.csv", "ask,right\nWho?,Ann\n")
    keys = given(questions=str(path), map={"question": "ask", "answers": "right"})
    prepared = prepare(make_request(keys))
    assert prepared.questions[0].answers == ("Ann",)
    assert prepared.submission.provenance["request"]["map"] == {"question": "ask", "answers": "right"}
    assert prepared.submission.provenance["reading"] == "q.csv: read as CSV; question=ask, answers=right"


INK = ("submit", "--system", "ircot", "--dataset", "jsonl", "--corpus", "ink", "--model", "scripted", "--questions")


def test_questions_come_from_standard_input_and_several_fields_behind_one_map(
    given: Given, cotrail: Run, home: Path
) -> None:
    """Nothing is submitted: the map is wrong, which is noticed once the questions are read."""
    given()
    for source in ("-", "/dev/stdin"):
        words = [sys.executable, "-m", "cotrail.cli.main", *INK, source, "--map", "question=ask", "answers=right"]
        environment = {**os.environ, "COTRAIL_HOME": str(home)}
        ended = subprocess.run(words, input=b"ask,rihgt\nWho?,Ann\n", capture_output=True, env=environment, check=False)
        assert ended.returncode == 2
        said = 'cotrail: stdin, line 2: the map is wrong: the file has no field "right" (there are: ask, rihgt); write'
        assert ended.stderr.decode().startswith(said)
    assert "--map ask names no field: write FIELD=NAME" in cotrail(*INK, "-", "--map", "ask").stderr


# Datasets as Hugging Face publishes them

INK_PAGE, PEN_PAGE = {"title": "Ink", "text": "Ink stains. It dries."}, {"title": "Pen", "text": "A pen."}
HOTPOT = {
    "id": "h",
    "question": "What stains?",
    "answer": "ink",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": {"title": ["Ink"], "sent_id": [0]},
    "context": {"title": ["Pen", "Ink"], "sentences": [["A pen."], ["Ink stains.", " It dries."]]},
}
WIKI = {
    "_id": "h",
    "question": "What stains?",
    "answer": "ink",
    "type": "comparison",
    "evidences": "[]",
    "supporting_facts": '[["Ink", 0]]',
    "context": '[["Pen", ["A pen."]], ["Ink", ["Ink stains.", "It dries."]]]',
}
PARAGRAPHS = [
    {"idx": 0, "title": "Pen", "paragraph_text": "A pen.", "is_supporting": False},
    {"idx": 1, "title": "Ink", "paragraph_text": "Ink stains. It dries.", "is_supporting": True},
]
MUSIQUE = {"id": "2hop__1_2", "question": "What stains?", "answer": "ink", "paragraphs": PARAGRAPHS}
COLUMNS = {name: [each[name] for each in PARAGRAPHS] for name in PARAGRAPHS[0]}
SQUAD = {
    "id": "s",
    "title": "Ink",
    "context": "Ink stains. It dries.",
    "question": "What stains?",
    "answers": {"text": ["ink"], "answer_start": [0]},
}
HUB: dict[str, dict[str, Any]] = {
    "hotpotqa": HOTPOT,
    "2wikimultihopqa": WIKI,
    "musique": MUSIQUE,
    "musique in columns": MUSIQUE | {"paragraphs": COLUMNS},
    "jsonl": SQUAD,
}


@each_case("form", ["jsonl", "json", "parquet"])
@each_case("name", HUB)
def test_rows_of_the_hub_are_read_with_their_paragraphs(name: str, form: str, tmp_path: Path) -> None:
    row, dataset = HUB[name], name.split()[0]
    made: dict[str, str | bytes] = {"jsonl": lines(row), "json": json.dumps([row]), "parquet": parquet_bytes([row])}
    path = written(tmp_path, f"hub.{form}", made[form])
    for asked in (dataset, "jsonl"):
        [question] = load_questions(asked, path)
        assert (question.text, question.answers) == ("What stains?", ("ink",))
        assert [(each.title, each.text) for each in question.gold] == [("Ink", "Ink stains. It dries.")]
    indexed = {(each.title, each.text) for each in read_corpus([path])}
    assert indexed == {("Ink", "Ink stains. It dries."), *([] if dataset == "jsonl" else [("Pen", "A pen.")])}


def test_a_sample_of_a_table_is_one_that_can_be_read(tmp_path: Path) -> None:
    for name in ("q.csv", "q.parquet"):
        path = written(tmp_path, name, FORMS[name])
        first, second = sample_file("jsonl", path, 1, 1, 13)
        drawn = written(tmp_path, f"drawn{suffix('jsonl', path)}", first + second)
        assert sorted(parts(load_questions("jsonl", drawn))) == READ


def test_no_two_refusals_send_to_each_other(tmp_path: Path) -> None:
    """What a refusal names as the file's dataset doesn't name another one."""
    rows = [*HUB.values(), *ROWS, {"question": "Who?", "answer": "Ann"}, {"qid": 1, "query": "Who?", "answer": "Ann"}]
    rows += [
        {"id": 1, "question": "Who?", "golden_answers": ["Ann"], "metadata": {"a": 1}},
        {"prompt": "Who?", "level": 1},
    ]
    rows += [{"Question": "Who?", "Answer": "Ann"}, {"id": 1, "question": "Who?", "possible_answers": "x", "prop": 1}]
    rows += [{"_id": "1", "question": "Who?", "context": [], "level": 1}, {"question_id": "1", "contexts": []}]
    for number, row in enumerate(rows):
        for name, content in (("l", lines(row)), ("j", json.dumps([row])), ("p", parquet_bytes([row]))):
            path = written(tmp_path, f"{number}.{name}", content)
            named = {
                asked: set(re.findall(r"'([a-z0-9-]+)'", refusal(asked, path))) & set(DATASETS) for asked in DATASETS
            }
            for asked, others in named.items():
                for other in others - {asked}:
                    assert not named[other] - {other}, (row, asked, other, refusal(other, path))


def refusal(dataset: str, path: Path) -> str:
    try:
        load_questions(dataset, path)
    except InputError as error:
        return str(error).replace(str(path), "")
    return ""


# Files that are broken, or made to do harm


@each_case(
    ("name", "content", "said"),
    [
        ("q.csv", "", "holds no questions"),
        ("q.csv", "id,question\n", "holds no questions"),
        ("q.parquet", parquet_bytes(ROWS[:1])[:-9], "q.parquet is damaged"),
        ("q.parquet", b"PAR1", "q.parquet is damaged"),
        ("q.arrow", arrow_bytes()[:-70], "q.arrow is damaged"),
        ("q.csv.gz", gzip.compress(table().encode())[:-9], "q.csv.gz: the packed file is broken"),
        ("q.csv.zst", zstd.compress(table().encode())[:-3], "q.csv.zst: the packed file is broken"),
        ("q.csv", "question,question\na,b\n", "line 1: the header names 'question' twice"),
        ("q.csv", "question,answer\nWho?\n", "line 2: 1 cells, and the header names 2"),
        ("q.csv", 'question,answer\n"Who?"?,b\n', "line 2: ',' expected after '\"'; correct the line"),
        ("q.csv", 'question,answer\nWho?,a\n"Who,b\nc,d\n', "line 3: unexpected end of data"),
        ("q.csv", "question\n \n", "line 2: the question is empty"),
        ("q.csv", 'question,answer\n" ",b\n', "line 2: the question is empty"),
        ("q.csv", "id,question\n1,a\n1,b\n", "line 3: a question before has the id '1' too"),
        ("q.csv", "id,question\n,a\n", "line 2: the id is empty"),
        ("q.csv", "question\nWho?\nWho?\n", "line 3: this question is there before"),
        ("q.csv", "question,a\nWho?,b\0c\n", "line 2: the text holds a NUL character"),
        ("q.csv", b"question,a\nok,b\ncaf\xe9,c\n", r"line 3: this isn't text in UTF-8 \(it has the byte 0xe9\)"),
        ("q.jsonl", b'{"question": "a"}\n{"question": "caf\xe9"}\n', "line 2: this isn't text in UTF-8"),
        ("q.csv", "question,a\n".encode("utf-16"), "is text in UTF-16; convert it"),
        ("q.csv", ",".join(f"c{n}" for n in range(10_000)) + "\n", "10,000 columns, and 1,000 is the most"),
        ("q.parquet", parquet_bytes([{f"c{n}": 1 for n in range(10_000)}]), "10,000 columns, and 1,000 is the most"),
        ("q.parquet", parquet_bytes([{"question": "a\0b"}]), "row 1: the text holds a NUL character"),
        ("q.jsonl", '{"question": "\\ud800"}\n', "line 1: this isn't valid JSON"),
        ("q.json", '[{"question": "\\udfff"}]', "entry 1: this isn't valid JSON"),
        ("q.jsonl", '{\n "question": "Who?"\n}\n', "line 1: this isn't valid JSON .*write each on one line, as `jq -c"),
        ("q.jsonl", lines({"question": None}), "line 1: `question` must be text"),
        ("q.jsonl", lines({"question": "\u200b\u2060"}), "line 1: the question is empty"),
        ("q.csv", "question,answer\rWho?,Ann\r", "its lines end in carriage returns alone"),
        ("q.csv", "Who?,Ann\nWhat?,Bo\n", "or add a first line that names the columns"),
    ],
)
def test_what_can_not_be_read_is_refused_with_its_place(
    name: str, content: str | bytes, said: str, tmp_path: Path
) -> None:
    path = written(tmp_path, name, content)
    with pytest.raises(DatasetError, match=said):
        load_questions("jsonl", path, fields={"question": "question"} if "c9999" in str(content) else {})


@each_case("name", ["q.arrow", "q.parquet", "q.csv.gz"])
def test_whatever_byte_of_a_file_is_wrong_it_is_read_or_refused(name: str, tmp_path: Path) -> None:
    content = FORMS[name]
    for place in range(0, len(content), 9):
        changed = content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]
        refusal("jsonl", written(tmp_path, name, changed))


@each_case("pack", [gzip.compress, zstd.compress])
def test_a_small_file_that_unpacks_to_much_is_refused(
    pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "LEAST_LIMIT", 2**20)
    path = written(tmp_path, "q.jsonl", pack(b'{"question": "a"}' + b"\n" * 2**21))
    with pytest.raises(
        DatasetError, match=r"q.jsonl holds more than 1 MiB, the limit for its size, as crafted files do"
    ):
        load_questions("jsonl", path)


def test_a_quotation_mark_that_is_never_closed_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (tables, text_files):
        monkeypatch.setattr(module, "MAX_RECORD_BYTES", 1_000)
    path = written(tmp_path, "q.csv", 'question,a\nWho?,"b\n' + "c,d\n" * 1_000)
    with pytest.raises(DatasetError, match=r"q.csv, line \d+: a row is larger than 0 KiB; close the quotation mark"):
        load_questions("jsonl", path)


def test_the_extra_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "q.parquet", FORMS["q.parquet"])
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotInstalledError, match=r"pyarrow isn't installed: `.*pyarrow.*selectolax"):
        load_questions("jsonl", path)


@tried_with(
    st.lists(st.sampled_from([b'"', b",", b"\n", b"\r", b"a", b"question", b"\xff", b"\0", b"|", b"["])).map(b"".join)
)
def test_any_table_is_read_or_refused_with_its_place(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), "q.csv", b"question,answer\n" + content)
        said = refusal("jsonl", path)
        assert said == "" or said.startswith((", line ", " holds", " seems", " begins"))


def test_a_form_is_told_by_content_before_its_name(tmp_path: Path) -> None:
    assert form_of(written(tmp_path, "x.csv", parquet_bytes()), InputError) == "Parquet"
    assert form_of(written(tmp_path, "x.parquet", "question,answer\n"), InputError) == "CSV"
    assert form_of(written(tmp_path, "x.txt", "some words\n"), InputError) is None


# Documents in every form

DOCUMENTS = [{"id": "d1", "title": "Ink", "text": "Ink stains."}, {"id": "d2", "title": "Pen", "text": "A\npen."}]
INDEXED = [("d1", "Ink", "Ink stains."), ("d2", "Pen", "A\npen.")]


def indexed(*paths: Path) -> list[tuple[str, str, str]]:
    return [(each.id, each.title, each.text) for each in read_corpus(paths)]


def pdf(folder: Path, name: str, *pages: str) -> Path:
    """A PDF with these texts, a page each."""
    writer = PdfWriter()
    for text in pages:
        page = writer.add_blank_page(200, 200)
        font = DictionaryObject({NameObject(f"/{key}"): NameObject(f"/{value}") for key, value in FONT.items()})
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F"): font})}
        )
        content = DecodedStreamObject()
        content.set_data(f"BT /F 12 Tf 10 100 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = content
    with (folder / name).open("wb") as file:
        writer.write(file)
    return folder / name


FONT = {"Type": "Font", "Subtype": "Type1", "BaseFont": "Helvetica"}

HTML = """<!doctype html><html><head><title>Inks &amp; pens</title><style>p {}</style></head><body><nav>menu</nav>
Before.<h2>On <em>ink</em></h2><p>Ink <b>sta</b>ins
paper.</p><script>no()</script><ul><li>one</li><li>two<p>three</p></li></ul><table><tr><td>a</td><td>b</td></tr></table>
<h3>Deep</h3><div><div>In divs.</div> Tail.</div><h1>Pens</h1>A<br>pen.</body></html>"""


@each_case("name", ["d.csv", "d.tsv", "d.jsonl", "d.json", "d.parquet", "d.csv.gz", "d.jsonl.zst", "d.parquet.zst"])
def test_documents_are_read_from_any_form(name: str, tmp_path: Path) -> None:
    made: dict[str, str | bytes] = {
        "csv": table(rows=DOCUMENTS),
        "tsv": table("\t", rows=DOCUMENTS),
        "jsonl": lines(*DOCUMENTS),
        "json": json.dumps(DOCUMENTS),
        "parquet": parquet_bytes(DOCUMENTS),
    }
    _, form, *packed = name.split(".")
    content = written(tmp_path, "plain", made[form]).read_bytes()
    for each in packed:
        content = gzip.compress(content) if each == "gz" else zstd.compress(content)
    assert indexed(written(tmp_path, name, content)) == INDEXED


def test_documents_are_read_from_a_folder_that_datasets_saved(tmp_path: Path) -> None:
    assert indexed(saved(tmp_path / "saved", DOCUMENTS)) == INDEXED
    saved(tmp_path / "all" / "train", DOCUMENTS)
    (tmp_path / "all" / "dataset_dict.json").write_text("{}")
    assert indexed(tmp_path / "all") == INDEXED


def test_bodies_are_cut_and_texts_without_ids_get_some(tmp_path: Path) -> None:
    body = " ".join(["w"] * 60)
    path = written(tmp_path, "d.jsonl", lines({"doc_id": 7, "Title": "T", "Body": f"{body}\n\n{body}", "other": 1}))
    assert indexed(path) == [("7#1", "T", body), ("7#2", "T", body)][:1]  # equal passages are kept once
    [short] = read_corpus([written(tmp_path, "d.csv", "url,title,body\nhttp://h,Ink,Ink stains.\n")])
    assert (len(short.id), short.title, short.text) == (32, "Ink", "Ink stains.")


@each_case(
    ("record", "said"),
    [
        (
            {"titel": "a", "txt": "b"},
            r"line 1: there is no key `titel` \(did you mean title\?\), `txt` \(did you mean text",
        ),
        ({"id": "1", "words": "b"}, "line 1: there is no field `text` or .* or `article` \\(but id, words\\); rename"),
        ({"id": "1", "text": "a", "body": "b"}, "`text` and `body` mean the same"),
        ({"id": "1", "text": None}, "`text` must be text"),
        ({"id": "1", "text": "\u200b"}, "the text is empty"),
    ],
)
def test_documents_that_can_not_be_read_are_refused(record: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=said):
        indexed(written(tmp_path, "d.jsonl", lines(record)))


def test_html_is_cut_at_its_headings(tmp_path: Path) -> None:
    assert indexed(written(tmp_path, "page.html", HTML)) == [
        ("page.html#1", "Inks & pens", "Before."),
        ("page.html#2", "Inks & pens > On ink", "Ink stains paper.\n\none\n\ntwo\n\nthree\n\na b"),
        ("page.html#3", "Inks & pens > On ink > Deep", "In divs.\n\nTail."),
        ("page.html#4", "Pens", "A pen."),
    ]
    deep = "<div>" * 50_000 + "deep"
    assert indexed(written(tmp_path, "deep.htm.gz", gzip.compress(deep.encode()))) == [
        ("deep.htm.gz#1", "deep", "deep")
    ]


def test_a_pdf_is_cut_by_its_pages(tmp_path: Path) -> None:
    path = pdf(tmp_path, "report.pdf", "Ink stains.", "", "A pen.")
    assert indexed(path) == [
        ("report.pdf#1", "report > page 1", "Ink stains."),
        ("report.pdf#2", "report > page 3", "A pen."),
    ]
    with pytest.raises(CorpusError, match=r"this PDF has no text, as one of pictures"):
        indexed(pdf(tmp_path, "scan.pdf", ""))
    for content in (b"", b"%PDF-1.4\n", path.read_bytes()[:300]):
        with pytest.raises(CorpusError, match=r"broken.pdf: this PDF (can't be read|has no text)"):
            indexed(written(tmp_path, "broken.pdf", content))


def test_a_folder_has_documents_or_else_records_or_beir_s_corpus(tmp_path: Path) -> None:
    written(tmp_path, "a.csv", table(rows=DOCUMENTS[:1]))
    written(tmp_path, "b.jsonl", lines(DOCUMENTS[1]))
    assert indexed(tmp_path) == INDEXED
    written(tmp_path, "c.txt", "Text.")
    assert indexed(tmp_path) == [("c.txt#1", "c", "Text.")]
    written(tmp_path, "corpus.jsonl", lines(DOCUMENTS[0]))
    assert indexed(tmp_path) == INDEXED[:1]


def test_links_are_followed_and_loops_end(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "notes", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    written(elsewhere, "x.md", "# X\n\nX.")
    (folder / "linked").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(folder)
    (folder / "self").symlink_to(folder)
    (folder / "gone").symlink_to(tmp_path / "nowhere")
    assert indexed(folder) == [("linked/x.md#1", "X", "X.")]


def test_beir_s_queries_may_have_answers(tmp_path: Path) -> None:
    written(tmp_path, "queries.jsonl", lines({"_id": "1", "text": "Who?", "metadata": {"answers": ["Ann"]}}))
    (tmp_path / "qrels").mkdir()
    path = written(tmp_path / "qrels", "test.tsv", "query-id\tcorpus-id\tscore\n1\td1\t1\n")
    assert load_questions("beir", path)[0].answers == ("Ann",)
